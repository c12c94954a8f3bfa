"""What a trained team is compared with: chance, both extremes, a checklist of the kind a person writes, the optimum."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from typing import Literal

from envs.supply_chain.expert import Checklist
from envs.supply_chain.hearsay import hearsay_for
from envs.supply_chain.optimum import ask_nothing, best_remedy, plan_for, random_play, solvable
from envs.supply_chain.sheets import Sheet
from envs.supply_chain.world import finding_in
from envs.supply_chain.world_file import RESOLVE, WorldFile
from runtime.records import ToolCall
from runtime.types import HAND_OVER, Baseline, Observation, ScriptedPolicy

Findings = Mapping[str, str]
"""What has been found so far, by tool."""
Handoff = Literal["notes", "verdict"]
Ask = Callable[[str, Findings], str | None]
"""``ask(agent, seen)``: the tool to ask next; None: hand over."""


class Reader:
    """Reads findings, and named suspicions, from what an agent sees."""

    def __init__(self, file: WorldFile, sheets: Mapping[str, Sheet]) -> None:
        self.file, self.sheets = file, sheets

    def findings(self, seen: Observation) -> dict[str, str]:
        """By tool, in the order in which they came up."""
        found: dict[str, str] = {}
        for line in seen.seen:
            if line.kind in ("answer", "note") and line.source in self.sheets:
                finding = finding_in(self.sheets[line.source], line.data)
                if finding is not None:
                    found[line.source] = finding
        return found

    def suspicion(self, seen: Observation) -> str | None:
        """The cause that the role before named, if it did."""
        named = [s.data["suspicion"] for s in seen.seen if s.kind == "note" and s.source not in self.sheets]
        return named[-1] if named else None


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a team plays by rule."""

    ask: Ask
    suspect: Callable[[str, Findings, str | None], str]
    """``suspect(agent, seen, heard)``: the cause to name, where only a suspicion travels."""
    remedy: Callable[[Findings, str | None], str]
    """``remedy(seen, heard)``: what the last agent does."""


def _played(reader: Reader, handoff: Handoff, strategy: Callable[[], Strategy]) -> dict[str, ScriptedPolicy]:
    last = reader.file.agents[-1]
    made = cache(strategy)

    def decide(seen: Observation, chance: Random) -> ToolCall:
        found, heard, play = reader.findings(seen), reader.suspicion(seen), made()
        if seen.agent == last:
            return ToolCall(tool=RESOLVE, args={"remedy": play.remedy(found, heard)})
        tool = play.ask(seen.agent, found)
        if tool is not None and _legal(seen, tool):
            return ToolCall(tool=tool)
        if handoff == "notes":
            return ToolCall(tool=HAND_OVER)
        return ToolCall(tool=HAND_OVER, args={"suspicion": play.suspect(seen.agent, found, heard)})

    return dict.fromkeys(reader.file.agents, decide)


def _legal(seen: Observation, tool: str) -> bool:
    return any(ok and c.tool == tool for c, ok in zip(seen.candidates, seen.mask, strict=True))


def baselines_of(file: WorldFile, sheets: Mapping[str, Sheet], handoff: Handoff) -> dict[str, Baseline]:
    """The baselines by name, each with what it earns exactly where that is known.

    ``optimal`` is always that of lossless notes: where only a verdict travels it is out of reach, and cannot be played.
    A world too large for exact computation has no ``optimal``.
    """
    notes = handoff == "notes"
    made = partial(_played, Reader(file, sheets), handoff)
    found = {
        "random": Baseline(exact=lambda: random_play(file, 1 if notes else len(file.causes))),
        "ask_nothing": Baseline(policies=made(lambda: _ask_nothing(file)), exact=lambda: ask_nothing(file)),
        "expert": Baseline(policies=made(lambda: _expert(file))),
    }
    everything = made(lambda: _ask_everything(file, notes))
    if not solvable(file):
        return {**found, "ask_everything": Baseline(policies=everything)} if notes else found
    return {
        **found,
        "ask_everything": Baseline(
            policies=everything, exact=lambda: plan_for(file).ask_everything if notes else hearsay_for(file).value
        ),
        "optimal": Baseline(
            policies=made(lambda: _optimal(file)) if notes else None, exact=lambda: plan_for(file).value
        ),
    }


def _ask_nothing(file: WorldFile) -> Strategy:
    blind = best_remedy(file, {})
    return Strategy(
        ask=lambda agent, seen: None,
        suspect=lambda agent, seen, heard: file.causes[0],
        remedy=lambda seen, heard: blind,
    )


def _ask_everything(file: WorldFile, notes: bool) -> Strategy:
    def ask(agent: str, seen: Findings) -> str | None:
        return next((t for t in file.owned(agent) if t not in seen), None)

    if notes:
        return Strategy(ask=ask, suspect=_unasked, remedy=lambda seen, heard: best_remedy(file, seen))
    hearsay = hearsay_for(file)
    return Strategy(ask=ask, suspect=hearsay.suspicion, remedy=hearsay.remedy)


def _expert(file: WorldFile) -> Strategy:
    checklist = Checklist(file)
    return Strategy(
        ask=checklist.ask,
        suspect=lambda agent, seen, heard: checklist.suspicion(seen, heard),
        remedy=checklist.remedy,
    )


def _optimal(file: WorldFile) -> Strategy:
    return Strategy(ask=plan_for(file).ask, suspect=_unasked, remedy=lambda seen, heard: best_remedy(file, seen))


def _unasked(agent: str, seen: Findings, heard: str | None) -> str:
    raise AssertionError("notes travel: nobody is asked for a suspicion")
