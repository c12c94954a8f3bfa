"""What each agent has seen so far, line by line."""

from dataclasses import replace

from runtime.records import Fault, Json, ToolCall
from runtime.tools import canonical, heading
from runtime.types import AgentId, Pipeline, Scenario, Seen, Team, World


class Transcript:
    """The lines each agent sees: the case, notes handed to it, its tools' answers, its errors, what the world shows."""

    def __init__(self, team: Team, scenario: Scenario, world: World) -> None:
        self._team = team
        self._look = getattr(world, "look", None)
        case = Seen(kind="case", source="case", data=scenario.visible, text=f"case {canonical(dict(scenario.visible))}")
        self._lines: dict[AgentId, list[Seen]] = {r.name: [case] for r in team.roles}

    def of(self, agent: AgentId) -> tuple[Seen, ...]:
        """All the agent sees now."""
        shown: Json = self._look(agent) if self._look else None
        lines = self._lines[agent]
        if shown is None:
            return tuple(lines)
        return (*lines, Seen(kind="world", source="world", data=shown, text=f"world {canonical(shown)}"))

    def answer(self, agent: AgentId, call: ToolCall, value: Json, at: float) -> None:
        """A tool answered, at that time (Unix time, s).

        With round-robin and simultaneous turns all agents see it, each other's under the name.
        """
        text = f"{heading(call)} {canonical(value)}"
        self._lines[agent].append(Seen(kind="answer", source=call.tool, data=value, text=text, at=at))
        if not isinstance(self._team.turns, Pipeline):
            note = Seen(kind="note", source=call.tool, data=value, text=f"[{agent}] {text}", at=at)
            self._to_others(agent, note)

    def _to_others(self, agent: AgentId, note: Seen) -> None:
        for other, lines in self._lines.items():
            if other != agent:
                lines.append(note)

    def fault(self, agent: AgentId, tool: str, fault: Fault | None) -> None:
        """A call failed."""
        data: Json = fault.model_dump() if fault else {}
        self._lines[agent].append(
            Seen(kind="error", source=tool, data=data, text=f"error {tool or 'call'} {canonical(data)}")
        )

    def hand(self, agent: AgentId, to: AgentId, call: ToolCall) -> Json:
        """The case changes hands: the receiver is told what travels with it. Returns the message's payload."""
        if call.args:
            note = Seen(kind="note", source=agent, data=dict(call.args), text=f"[{agent}] {canonical(dict(call.args))}")
            self._lines[to].append(note)
            return dict(call.args)
        notes = [_noted(agent, s) for s in self._lines[agent] if s.kind in ("answer", "note")]
        known = {s.text for s in self._lines[to]}
        self._lines[to].extend(n for n in notes if n.text not in known and _bare(n.text) not in known)
        return {"notes": [n.text for n in notes]}


def _noted(agent: AgentId, seen: Seen) -> Seen:
    if seen.kind == "note":
        return seen
    return replace(seen, kind="note", text=f"[{agent}] {seen.text}")


def _bare(text: str) -> str:
    """A note's line without its author: the same line as the author's own."""
    return text.split("] ", 1)[-1]
