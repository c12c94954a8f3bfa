"""What a team was asked live, as scenarios to train on: once each, playable, and none that evaluation holds out."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assembly.experiment import Experiment
from assembly.sections import Scenarios
from envs.scenarios import Generated, read_scenarios
from runtime.errors import TeamError
from runtime.moments import as_text, unix_time
from runtime.recorded import RecordedSession, read_sessions, recorded_sessions
from runtime.store import open_store
from runtime.types import Scenario, Team

SQLITE = "sqlite:///"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """Scenarios of recorded sessions, and what became of the others."""

    scenarios: tuple[Scenario, ...]
    sessions: int
    """All that were found."""
    repeated: int
    """Left out: another session was on the same scenario."""
    held_out: int
    """Left out: evaluation plays them."""
    unplayable: int
    """Left out: the team's world cannot be made without what is not known of them, such as the truth."""
    versions: Counter[str] = field(default_factory=Counter[str])
    """Which versions had played them, by the hash of their content."""

    def told(self) -> str:
        """What was found, in words."""
        return (
            f"{self.sessions} recorded sessions: {len(self.scenarios)} scenarios to train on "
            f"({self.repeated} repeated, {self.held_out} held out, {self.unplayable} not playable)"
        )


def recorded(cases: Scenarios, team: Team) -> Recorded:
    """The scenarios that ``scenarios: {from: live, …}`` means.

    Args:
        cases: that section.
        team: who is to play them.

    Raises:
        TeamError: there is no such store or file, or nothing in it can be trained on.
    """
    sessions = [(s.case(), s.session, s.version) for s in _sessions(cases, team)]
    known = HeldOut.of(_held_out(cases, team), [case for case, _, _ in sessions])
    kept, seen, left, versions = dict[str, Scenario](), set[str](), Counter[str](), Counter[str]()
    for case, session, version in sessions:
        why = _unfit(case, team, seen, known)
        left[why] += 1
        if not why:
            versions[version] += 1
            seen.add(_exactly(case))
            name = case.id if case.id not in kept else f"{case.id}@{session}"
            kept[name] = replace(case, id=name)
    found = Recorded(
        scenarios=tuple(kept.values()),
        sessions=len(sessions),
        repeated=left["repeated"],
        held_out=left["held out"],
        unplayable=left["unplayable"],
        versions=versions,
    )
    if not kept:
        raise TeamError(f"{cases.store}: {found.told()}; none is left for {cases.team or team.name}")
    return found


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How held-out cases are recognized: by what they say. Where texts are drawn from a few, by their chance too."""

    cases: frozenset[str]
    by_chance: bool

    @classmethod
    def of(cls, held_out: Iterable[Scenario], sessions: Iterable[Scenario]) -> "HeldOut":
        """What recognizes these cases in a stream of which some scenarios are given."""
        once = {_exactly(case): _content(case) for case in sessions}
        by_chance = len(set(once.values())) < len(once)
        return cls(frozenset(map(_exactly if by_chance else _content, held_out)), by_chance)

    def __contains__(self, case: Scenario) -> bool:
        return (_exactly(case) if self.by_chance else _content(case)) in self.cases


def _unfit(case: Scenario, team: Team, seen: set[str], held_out: HeldOut) -> str:
    """Why a case is not trained on; empty: it is."""
    if case in held_out:
        return "held out"
    if _exactly(case) in seen:
        return "repeated"
    return "" if playable(case, team) else "unplayable"


def playable(case: Scenario, team: Team) -> bool:
    """Whether the team's world can be made of a case. Live, the truth is often not known."""
    if not case.truth and team.generate is not None and team.generate("train", 0, 0).truth:
        return False
    try:
        team.world(case)
    except Exception:  # noqa: BLE001 - the team's own code: whatever it raises, the case cannot be played
        return False
    return True


def _content(case: Scenario) -> str:
    """A case by what it says."""
    return json.dumps([case.visible, case.truth], sort_keys=True, default=str)


def _exactly(case: Scenario) -> str:
    """A case by what it says and by its chance."""
    return f"{_content(case)} {case.seed}"


def _held_out(cases: Scenarios, team: Team) -> Iterable[Scenario]:
    """What evaluation plays."""
    if cases.eval.file is not None:
        return read_scenarios(Path(cases.eval.file))
    source = Generated(team, "eval", cases.eval.seed, cases.eval.count)
    return map(source, range(cases.eval.count))


def _sessions(cases: Scenarios, team: Team) -> Iterator[RecordedSession]:
    assert cases.store is not None
    name = cases.team or team.name
    since = unix_time(cases.since) if cases.since else float("-inf")
    until = unix_time(cases.until) if cases.until else float("inf")
    if "://" not in cases.store:
        found: Iterable[RecordedSession] = read_sessions(Path(cases.store))
        yield from (s for s in found if s.team == name and since <= s.ended < until)
        return
    if cases.store.startswith(SQLITE) and not Path(cases.store.removeprefix(SQLITE)).is_file():
        raise TeamError(f"{cases.store}: there is no such file")
    store = open_store(cases.store)
    try:
        yield from recorded_sessions(store, name, since, until)
    finally:
        store.close()


def settled(experiment: Experiment, now: float) -> Experiment:
    """The experiment with the end of its recorded sessions written down, so that a resumed run trains on the same."""
    cases = experiment.scenarios
    if cases.source is None or cases.until is not None:
        return experiment
    return experiment.model_copy(update={"scenarios": cases.model_copy(update={"until": as_text(now)})})


def lineage(cases: Scenarios, found: Recorded) -> dict[str, Any]:
    """What a version says of the sessions it was trained on: its parent is the version that played most of them."""
    most = [name for name, _ in found.versions.most_common(1) if name]
    about = {"team": cases.team, "since": cases.since, "until": cases.until, "scenarios": len(found.scenarios)}
    return {"parent": most[0] if most else None, "recorded": about | {"versions": dict(found.versions)}}
