"""Replays of teams that all act at once, and of roles that decide by rule and tell no probabilities."""

import dataclasses
from random import Random

import pytest

from assembly.driving import Driven
from assembly.live import case_of
from assembly.versions import Version
from envs.session import Session
from policies.playing import RulePolicy
from rewards.mix import Mix, Weighted
from rewards.terms import TERMS
from runtime.recorded import RecordedSession
from runtime.records import Decided, EpisodeOpened, Observed, ToolAnswered, ToolCall
from runtime.types import Observation, Scenario, ScriptedPolicy, Team
from serving.replay.replaying import replayed
from serving.replay.words import lines_of, table_of
from tests.envs.toys import DOCTOR, NURSE, at_once, clinic

PATIENT = Scenario(id="patient", visible={"age": 7}, truth={"ill": "flu"}, seed=5)


def first(seen: Observation, _chance: Random) -> int:
    """The first legal call."""
    return seen.mask.index(True)


def doctor_last(seen: Observation, _chance: Random) -> int:
    """The nurse as ever; the doctor takes the last legal call."""
    legal = [i for i, ok in enumerate(seen.mask) if ok]
    return legal[-1] if seen.agent == "doctor" else legal[0]


def nonsense(seen: Observation, _chance: Random) -> ToolCall:
    """A call that nobody has."""
    return ToolCall(tool="sing", args={"turn": seen.turn})


def by(rule: ScriptedPolicy, team: Team) -> Version:
    seats = {role.name: RulePolicy(rule) for role in team.roles}
    return Version(name=rule.__name__, team=team, seats=seats, judge=Mix([Weighted(TERMS["solved"])]))


def recorded(version: Version, pace: float = 0.0) -> RecordedSession:
    """A session of that version, as the live runtime records it; a decision takes ``pace`` (s)."""
    at = [1.0]
    session = Session(version.team, PATIENT, correlation_id="s", version=version.name, clock=lambda: at[0])
    opened = session.records[0]
    assert isinstance(opened, EpisodeOpened)
    session.records[0] = opened.model_copy(update={"case": case_of(PATIENT)})
    driven = Driven(session, version.seats, version.judge)
    while not driven.over:
        driven.step()
        at[0] += pace
    return RecordedSession(
        team=version.team.name,
        session="s",
        version=version.name,
        scenario=PATIENT.id,
        scenario_seed=PATIENT.seed,
        visible=PATIENT.visible,
        truth=PATIENT.truth,
        opened=1.0,
        ended=1.0,
        success=session.success,
        truncated=session.truncated,
        degraded=False,
        reward=None,
        records=tuple(r.model_dump_json() for r in session.records),
    )


@pytest.mark.parametrize("team", [at_once(2), clinic()], ids=["at once", "in turn"])
def test_the_same_rule_does_the_same(team: Team) -> None:
    """Every decision of every round."""
    told = recorded(by(first, team))
    replay = replayed(by(first, team), told)
    assert (replay.parting, replay.stopped, replay.paid.verdict()) == (None, "", "same")
    assert replay.agreed == sum(isinstance(r, Decided) for r in told.told()) > 0


def test_what_was_read_is_as_old_as_it_was() -> None:
    """An agent that is told how old its readings are sees in a replay what it saw: time is that of the record."""
    nurse = dataclasses.replace(NURSE, max_age_s=10.0)
    version = by(first, clinic(roles=(nurse, DOCTOR)))
    told = recorded(version, pace=6.0)
    replay = replayed(version, told)
    seen = [r.text for r in told.told() if isinstance(r, Observed)]
    assert [r.text for r in replay.records if isinstance(r, Observed)] == seen
    assert (replay.parting, replay.stopped) == (None, "")


def test_in_a_round_the_one_who_decides_otherwise_is_named() -> None:
    """The others of the round agree; what was seen is the same, since all decide before anybody acts."""
    replay = replayed(by(doctor_last, at_once(2)), recorded(by(first, at_once(2))))
    assert replay.parting
    assert (replay.parting.agent, replay.parting.turn, replay.agreed) == ("doctor", 0, 1)
    assert replay.parting.seen == replay.parting.sees
    assert [o.was for o in replay.parting.options if o.was is not None] == []
    assert replay.stopped == ""
    assert "doctor/0" in "\n".join(lines_of(replay, "v2"))


def moved_by_odd_news(seen: Observation, _chance: Random) -> int:
    """The first legal call; the last one after an answer that nobody expects."""
    legal = [i for i, ok in enumerate(seen.mask) if ok]
    return legal[-1] if "odd" in seen.text else legal[0]


def test_a_world_that_answered_otherwise_cannot_go_on() -> None:
    """What was recorded is what is seen; once the two part, that world can no longer take the place of the record."""
    told = recorded(by(first, clinic()))
    records = told.told()
    place = next(i for i, r in enumerate(records) if isinstance(r, ToolAnswered))
    records[place] = records[place].model_copy(update={"value": {"odd": 1}})
    changed = told.model_copy(update={"records": tuple(r.model_dump_json() for r in records)})
    replay = replayed(by(moved_by_odd_news, clinic()), changed)
    assert [r.value for r in replay.records if isinstance(r, ToolAnswered)] == [{"odd": 1}]
    assert replay.parting
    assert "odd" in replay.parting.sees
    assert "answered otherwise than recorded" in replay.stopped
    assert replay.paid.verdict() == "unknown"


def test_an_answer_that_is_not_on_record_is_not_made_up() -> None:
    """The replay stops there; the table says why, and does not count the session as decided throughout."""
    told = recorded(by(first, clinic()))
    without = told.model_copy(
        update={"records": tuple(r.model_dump_json() for r in told.told() if not isinstance(r, ToolAnswered))}
    )
    replay = replayed(by(first, clinic()), without)
    assert replay.parting is None
    assert replay.stopped == "what take_temperature answered was not recorded"
    lines = list(table_of([replay], [], "v2"))
    assert lines[0].endswith("1 unknown; 0 decided throughout as recorded")
    assert f"stopped: {replay.stopped}" in lines[2]


def test_a_call_that_nobody_has_is_told_as_it_is() -> None:
    """It is among what could have been chosen, and answered with an error as ever."""
    replay = replayed(by(nonsense, clinic()), recorded(by(first, clinic())))
    assert replay.parting
    assert replay.parting.now == ToolCall(tool="sing", args={"turn": 0})
    assert replay.parting.now in [o.call for o in replay.parting.options]
    assert "chooses sing(turn=0)" in "\n".join(lines_of(replay, "v2"))


def test_a_session_that_ended_earlier_than_the_replay() -> None:
    """Where nothing is on record any more, that is the parting."""
    told = recorded(by(first, clinic()))
    records = told.told()
    cut = next(i for i, r in enumerate(records) if isinstance(r, Decided)) - 1
    short = told.model_copy(update={"records": tuple(r.model_dump_json() for r in records[:cut])})
    replay = replayed(by(first, clinic()), short)
    assert replay.parting
    assert (replay.parting.was, replay.parting.seen, replay.agreed) == (None, "", 0)
    assert "nothing: it had ended" in "\n".join(lines_of(replay, "v2"))
