"""A checklist of the kind a person writes: look for the first alarm and act on it; no probabilities are multiplied."""

from collections.abc import Mapping

from envs.supply_chain.world_file import WorldFile


class Checklist:
    """One line for each unusual answer: "if the count is short, it is shrinkage".

    What a tool says of most causes is usual; anything else is an alarm, and points to the cause that shows it most
    often. Tools are asked from the cheapest on, until one raises an alarm.
    """

    def __init__(self, file: WorldFile) -> None:
        self._file = file
        self._points_to = {name: _alarms(file, name) for name in file.tools}

    def alarm(self, seen: Mapping[str, str]) -> str | None:
        """The cause that the latest unusual finding points to; None where all is as usual."""
        alarms = [self._points_to[t][f] for t, f in seen.items() if f in self._points_to[t]]
        return alarms[-1] if alarms else None

    def ask(self, agent: str, seen: Mapping[str, str]) -> str | None:
        """The cheapest tool left, unless an alarm has been raised."""
        left = [t for t in self._file.owned(agent) if t not in seen]
        if not left or self.alarm(seen) is not None:
            return None
        return min(left, key=lambda t: self._file.tools[t].cost)

    def suspicion(self, seen: Mapping[str, str], heard: str | None) -> str:
        """The alarm's cause, else what was heard, else the commonest cause."""
        return self.alarm(seen) or heard or max(self._file.causes, key=lambda c: self._file.prior[c])

    def remedy(self, seen: Mapping[str, str], heard: str | None) -> str:
        """What helps best against the alarm's cause or the one heard of; without either, what can do the least harm."""
        cause, payoff = self.alarm(seen) or heard, self._file.payoff
        if cause is None:
            return max(self._file.remedies, key=lambda r: min(payoff[r].values()))
        return max(self._file.remedies, key=lambda r: payoff[r][cause])


def _alarms(file: WorldFile, name: str) -> dict[str, str]:
    tool = file.tools[name]
    places = range(len(tool.findings))
    likeliest = [max(places, key=tool.likelihood[c].__getitem__) for c in file.causes]
    usual = max(places, key=likeliest.count)
    return {tool.findings[i]: _most_often(file, name, i) for i in places if i != usual}


def _most_often(file: WorldFile, name: str, place: int) -> str:
    return max(file.causes, key=lambda c: file.tools[name].likelihood[c][place])
