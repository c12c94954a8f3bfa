"""L2: a hundred cases go through the whole team, each under one correlation id, and nothing of them is lost."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count

from assembly.gates.measured import Gate, Measure
from assembly.gates.table import Opens, TeamTable
from runtime.records import (
    Decided,
    EpisodeEnded,
    EpisodeOpened,
    Observed,
    Record,
    Sent,
    ToolAnswered,
    ToolCalled,
)
from runtime.types import Pipeline, Team

PROMISE = "cases go through the whole team under one correlation id, and no event is lost"


def l2(opens: Opens, team: Team | None, chains: int, complete: float) -> Gate:
    """Play so many cases to the end in this process, and look at their records."""
    if team is None:
        return Gate(name="L2", promise=PROMISE, not_applicable="a PettingZoo environment passes no case on")
    return on_record(list(_played(opens, chains)), team, chains, complete)


def on_record(found: Sequence[Sequence[Record]], team: Team, chains: int, complete: float) -> Gate:
    """The gate, from the records of the cases that were played, wherever they were."""
    broken = [(k, why) for k, why in enumerate(map(_broken(team), found)) if why]
    lost = sum(len(list(_lost(r))) for r in found)
    whole = len(found) - len(broken)
    return Gate(
        name="L2",
        promise=PROMISE,
        measures=(
            Measure(
                what=f"complete chains {' -> '.join(team.turns.order)}",
                ok=whole >= complete * chains,
                value=float(whole),
                unit="chains",
                wanted=f">= {complete * chains:g} of {chains}",
                note=f"case {broken[0][0]}: {broken[0][1]}" if broken else "",
            ),
            Measure(what="events lost", ok=lost == 0, value=float(lost), unit="events", wanted="0"),
        ),
    )


def _played(opens: Opens, chains: int) -> Iterator[Sequence[Record]]:
    for episode in count():
        if episode >= chains:
            return
        table = opens(episode)
        assert isinstance(table, TeamTable)
        while not table.over:
            table.step()
        yield table.session.records


def _broken(team: Team) -> Callable[[Sequence[Record]], str]:
    needs = set(team.turns.order)

    def why(records: Sequence[Record]) -> str:
        """What a case's records lack; empty where the chain is whole."""
        if len({r.correlation_id for r in records}) != 1:
            return "its records have several correlation ids"
        if not isinstance(records[0], EpisodeOpened) or not any(isinstance(r, EpisodeEnded) for r in records):
            return "it was not opened, or did not end"
        end = next(r for r in records if isinstance(r, EpisodeEnded))
        if end.truncated:
            return "it was cut before the team had ended it"
        acted = {r.agent for r in records if isinstance(r, Decided)}
        if isinstance(team.turns, Pipeline) and team.turns.order[-1] not in acted:
            return f"it never reached {team.turns.order[-1]}"
        idle = needs - acted
        return "" if not idle or isinstance(team.turns, Pipeline) else f"{', '.join(sorted(idle))} never acted"

    return why


def _lost(records: Sequence[Record]) -> Iterator[str]:
    """Events without what must follow: a call without an answer, a message nobody acted on."""
    called = {r.decision_id for r in records if isinstance(r, ToolCalled)}
    answered = {r.decision_id for r in records if isinstance(r, ToolAnswered)}
    yield from called - answered
    decided = {r.decision_id for r in records if isinstance(r, Decided)}
    observed = {r.decision_id for r in records if isinstance(r, Observed)}
    yield from decided ^ observed
    over = any(isinstance(r, EpisodeEnded) and r.truncated for r in records)
    for place, record in enumerate(records):
        if not isinstance(record, Sent) or over:
            continue
        if not any(isinstance(r, Observed) and r.agent == record.to for r in records[place:]):
            yield f"{record.decision_id} to {record.to}"
