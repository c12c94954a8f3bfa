"""One run of a team: who acts, what is seen, what an action does."""

import dataclasses

import pytest

from envs.session import Sampled, Session
from runtime.records import (
    Decided,
    EpisodeEnded,
    EpisodeOpened,
    Observed,
    Sent,
    ToolAnswered,
    ToolCalled,
)
from runtime.tools import tool
from runtime.types import HAND_BACK, HAND_OVER, PASS_TURN, Pipeline, Role, Simultaneous
from tests.envs.toys import (
    DOCTOR,
    NURSE,
    TURNS,
    Clinic,
    at_once,
    call,
    clinic,
    legal,
    opened,
    rounds,
    tools,
    with_budget,
)


def test_a_case_goes_down_the_pipeline_and_ends_with_the_tool_that_ends() -> None:
    """Nurse asks, hands over, doctor treats: each step leaves its records, in order."""
    session = opened(ill="flu")
    assert session.to_act == ("nurse",)
    session.act("nurse", call("take_temperature"))
    session.act("nurse", call(HAND_OVER))
    assert session.to_act == ("doctor",)
    session.act("doctor", call("treat", against="flu"))
    assert session.ended
    assert session.success
    assert not session.truncated
    assert session.outcome == {"given": "flu"}
    assert [type(r) for r in session.records] == [
        EpisodeOpened, Observed, Decided, ToolCalled, ToolAnswered, Observed, Decided, Sent,
        Observed, Decided, ToolCalled, ToolAnswered, EpisodeEnded,
    ]  # fmt: skip


def test_act_returns_the_records_of_its_step_and_only_those() -> None:
    """What happened in a step is what act returns."""
    session = opened()
    before = len(session.records)
    step = session.act("nurse", 0)
    assert list(step) == session.records[before:]
    assert len({getattr(r, "decision_id", "") for r in step}) == 1


def test_observing_changes_nothing() -> None:
    """Looking twice shows the same thing and leaves no record."""
    session = opened()
    assert session.observe("nurse") is session.observe("nurse")
    assert len(session.records) == 1


def test_a_truth_is_in_no_observation_until_a_tool_tells() -> None:
    """Who asks nothing sees the visible part of the case only."""
    assert opened(ill="flu").observe("nurse").text == opened(ill="gout").observe("nurse").text == 'case {"age": 7}'


def test_it_must_be_the_agents_turn() -> None:
    """Acting out of turn is the caller's mistake and raises, naming whose turn it is."""
    session = opened()
    with pytest.raises(ValueError, match="not doctor's turn; to act: nurse"):
        session.act("doctor", 0)
    session.cut()
    with pytest.raises(ValueError, match="the episode is over"):
        session.act("nurse", 0)


def test_how_an_action_was_sampled_is_recorded() -> None:
    """The decision's record carries log-probability, probabilities and policy hash."""
    sampled = Sampled(logp=-0.5, probabilities=(0.6, 0.4), policy_hash="abc")
    decided = next(r for r in opened().act("nurse", 0, sampled) if isinstance(r, Decided))
    assert (decided.logp, decided.probabilities, decided.policy_hash) == (-0.5, (0.6, 0.4), "abc")


def test_same_scenario_seed_and_calls_make_the_same_records() -> None:
    """Nothing but scenario, seed and actions decides what happens; a correlation id comes from them too."""
    one, other = opened(seed=3), opened(seed=3)
    for session in (one, other):
        session.act("nurse", 1)
        session.act("nurse", call(HAND_OVER))
    assert one.records == other.records
    assert one.correlation_id != opened(seed=4).correlation_id


def test_what_was_asked_once_is_masked_where_the_team_does_not_repeat() -> None:
    """A call made before is illegal, answered with a fault and counted; other arguments stay legal."""
    session = opened(clinic(repeats=False))
    session.act("nurse", call("listen", to="heart"))
    seen = session.observe("nurse")
    assert [c for c, ok in zip(seen.candidates, seen.mask, strict=True) if not ok] == [call("listen", to="heart")]
    answer = session.act("nurse", call("listen", to="heart"))[-1]
    assert isinstance(answer, ToolAnswered)
    assert answer.fault is not None
    assert answer.fault.code == "illegal"
    assert session.invalid == {"nurse": 1}
    assert session.act("nurse", call("listen", to="lungs"))[-1].model_dump()["ok"]


def test_a_team_may_let_its_roles_repeat() -> None:
    """With repeats, the same call stays legal."""
    session = opened(clinic(repeats=True))
    session.act("nurse", 0)
    assert all(session.observe("nurse").mask)


def test_max_turns_cuts_the_episode() -> None:
    """After max_turns decisions the episode is truncated, and no success."""
    session = opened(clinic(max_turns=2, repeats=True))
    session.act("nurse", 0)
    assert not session.ended
    session.act("nurse", 0)
    assert session.ended
    assert session.truncated
    assert not session.success
    assert session.to_act == ()


def test_an_end_on_the_last_turn_is_no_truncation() -> None:
    """A team that finishes with its last turn has finished."""
    session = opened(clinic(max_turns=2), ill="gout")
    session.act("nurse", call(HAND_OVER))
    session.act("doctor", call("treat", against="gout"))
    assert (session.ended, session.truncated, session.success) == (True, False, True)


def test_cutting_ends_once() -> None:
    """An episode ends one time, whoever cuts it."""
    session = opened()
    session.cut()
    session.cut()
    assert sum(isinstance(r, EpisodeEnded) for r in session.records) == 1


# -- what travels


def test_notes_travel_down_the_pipeline() -> None:
    """The doctor sees what the nurse found out, under her name, and nothing else."""
    session = opened(ill="flu")
    session.act("nurse", call("take_temperature"))
    session.act("nurse", call(HAND_OVER))
    assert session.observe("doctor").text == 'case {"age": 7}\n[nurse] take_temperature {"celsius": 39.5}'


def test_only_the_verdict_travels_where_the_team_says_so() -> None:
    """With handoff 'verdict' the doctor sees the named suspicion and none of the nurse's notes."""
    team = clinic(turns=Pipeline(order=("nurse", "doctor"), handoff="verdict", verdicts=("fever", "other")))
    session = opened(team)
    session.act("nurse", call("take_temperature"))
    sent = session.act("nurse", call(HAND_OVER, suspicion="fever"))[-1]
    assert isinstance(sent, Sent)
    assert sent.payload == {"suspicion": "fever"}
    assert session.observe("doctor").text == 'case {"age": 7}\n[nurse] {"suspicion": "fever"}'


@pytest.mark.parametrize("args", [{}, {"suspicion": "plague"}, {"suspicion": 3}, {"suspicion": "fever", "more": 1}])
def test_a_verdict_that_cannot_be_named_is_refused(args: dict[str, object]) -> None:
    """A suspicion that is not listed is answered with a fault, and the case stays where it is."""
    team = clinic(turns=Pipeline(order=("nurse", "doctor"), handoff="verdict", verdicts=("fever", "other")))
    session = opened(team)
    session.act("nurse", call(HAND_OVER, **args))
    assert session.invalid == {"nurse": 1}
    assert session.to_act == ("nurse",)


def test_the_first_role_cannot_hand_back_and_the_last_cannot_hand_over() -> None:
    """Passing calls exist only where somebody stands to receive."""
    session = opened(clinic(turns=Pipeline(order=("nurse", "doctor"), hand_back=True)))
    assert HAND_BACK not in legal(session, "nurse")
    assert HAND_OVER not in legal(session, "doctor")
    assert HAND_BACK in legal(session, "doctor")
    session.act("nurse", call(HAND_BACK))
    assert session.invalid == {"nurse": 1}


def test_hand_back_returns_the_case_and_no_note_arrives_twice() -> None:
    """To and fro, each finding stands once in what each role sees."""
    session = opened(clinic(turns=Pipeline(order=("nurse", "doctor"), hand_back=True)))
    session.act("nurse", call("take_temperature"))
    session.act("nurse", call(HAND_OVER))
    session.act("doctor", call(HAND_BACK))
    assert session.to_act == ("nurse",)
    session.act("nurse", call("listen", to="lungs"))
    session.act("nurse", call(HAND_OVER))
    for agent in ("nurse", "doctor"):
        lines = session.observe(agent).text.splitlines()
        assert len(lines) == 3
        assert sum("take_temperature" in line for line in lines) == 1


# -- rounds


def test_round_robin_gives_each_one_call_and_all_see_it() -> None:
    """Nurse, doctor, nurse, doctor; then the rounds are over."""
    team = rounds(2, tools=tools(tool(look_at)), roles=(NURSE, with_tools("look_at")))
    session = opened(team)
    order: list[str] = []
    while not session.ended:
        order += session.to_act
        session.act(session.to_act[0], 0)
    assert order == ["nurse", "doctor", "nurse", "doctor"]
    assert "[nurse] take_temperature" in session.observe("doctor").text
    assert "[doctor] look_at" in session.observe("nurse").text


def look_at(world: Clinic) -> str:
    """Look at the patient."""
    return "pale"


def with_tools(*names: str) -> Role:
    return dataclasses.replace(DOCTOR, tools=names)


def test_simultaneous_decisions_are_taken_on_what_was_seen_before_the_round() -> None:
    """Nobody sees in a round what another did in it; afterwards everybody does."""
    team = at_once(2, roles=(NURSE, with_tools("listen")))
    session = opened(team)
    assert session.to_act == ("nurse", "doctor")
    step = session.act_all({"nurse": 0, "doctor": 0})
    assert {r.agent: r.text for r in step if isinstance(r, Observed)} == dict.fromkeys(
        ("nurse", "doctor"), 'case {"age": 7}'
    )
    assert "[nurse] take_temperature" in session.observe("doctor").text
    assert "[doctor] listen" in session.observe("nurse").text


def test_a_call_that_ends_stops_a_simultaneous_round() -> None:
    """Who acts after the end does not act."""
    session = opened(clinic(turns=Simultaneous(order=("doctor", "nurse"), rounds=2)))
    step = session.act_all({"doctor": call("treat", against="flu"), "nurse": 0})
    assert session.ended
    assert [r.agent for r in step if isinstance(r, Decided)] == ["doctor"]


def test_a_world_can_end_the_episode_between_rounds() -> None:
    """end_round is asked once a round, after everybody acted."""

    class Ticking(Clinic):
        def end_round(self) -> bool:
            self.rounds += 1
            return self.rounds == 2

    session = opened(at_once(9, world=Ticking, repeats=True, roles=(NURSE, with_tools("listen"))))
    turns = 0
    while not session.ended:
        session.act_all(dict.fromkeys(session.to_act, 0))
        turns += 1
    assert turns == 2
    assert not session.truncated


def test_who_has_nothing_left_to_call_can_let_a_turn_pass() -> None:
    """Where turns go round and calls run out, there is always pass_turn."""
    session = opened(rounds(9))
    for _ in range(3):
        session.act("nurse", legal_index(session, "nurse"))
        session.act("doctor", call(PASS_TURN))
    assert legal(session, "nurse") == [PASS_TURN]
    session.act("nurse", call(PASS_TURN))
    assert session.invalid.total() == 0


def legal_index(session: Session, agent: str) -> int:
    return session.observe(agent).mask.index(True)


# -- what the world shows, and what tools answer


def test_a_world_may_show_something_at_every_turn() -> None:
    """look() is shown as it is now, not as it was."""

    class Watched(Clinic):
        def look(self, agent: str) -> dict[str, object]:
            return {"to": agent, "given": self.given}

    session = opened(clinic(world=Watched))
    assert session.observe("nurse").text.endswith('world {"to": "nurse", "given": null}')
    assert session.observe("nurse").seen[-1].kind == "world"


def test_a_tool_that_raises_answers_with_an_error() -> None:
    """What a tool raises is told to the agent; the episode goes on and the call is billed."""

    def broken(world: Clinic) -> str:
        """Always fails."""
        raise RuntimeError("out of order")

    team = clinic(
        tools=tools(tool(broken, cost_usd=3.0)),
        roles=(with_tools("broken", "treat"),),
        turns=Pipeline(order=("doctor",)),
    )
    session = opened(team)
    answer = session.act("doctor", call("broken"))[-1]
    assert isinstance(answer, ToolAnswered)
    assert answer.fault is not None
    assert (answer.fault.code, answer.fault.message, answer.cost_usd) == (
        "tool_failed",
        "RuntimeError: out of order",
        3.0,
    )
    assert "out of order" in session.observe("doctor").text
    assert session.to_act == ("doctor",)


@pytest.mark.parametrize("odd", [{"celsius": "warm"}, "39", None, {1: 2.0}, {1, 2}, b"39", object()])
def test_an_answer_that_breaks_its_contract_is_a_fault_and_never_raises(odd: object) -> None:
    """Wrong types, and what is no JSON at all, are answered as bad_answer."""

    def measure(world: Clinic) -> dict[str, float]:
        """Measure."""
        return odd  # type: ignore[return-value]

    team = clinic(
        tools=tools(tool(measure)), roles=(with_tools("measure", "treat"),), turns=Pipeline(order=("doctor",))
    )
    session = opened(team)
    answer = session.act("doctor", call("measure"))[-1]
    assert isinstance(answer, ToolAnswered)
    assert answer.fault is not None
    assert answer.fault.code == "bad_answer"


def test_a_loose_tools_texts_are_coerced_and_the_raw_answer_is_kept() -> None:
    """\"25.3\" counts as 25.3 where the tool is loose, and the record shows both."""

    def measure(world: Clinic) -> dict[str, float]:
        """Measure."""
        return {"celsius": " 25.3 "}  # type: ignore[dict-item]

    one_role = {"roles": (with_tools("measure", "treat"),), "turns": Pipeline(order=("doctor",))}
    session = opened(clinic(tools=tools(tool(measure, loose=True)), **one_role))
    answer = session.act("doctor", call("measure"))[-1]
    assert isinstance(answer, ToolAnswered)
    assert (answer.value, answer.raw) == ({"celsius": 25.3}, {"celsius": " 25.3 "})


# -- budgets


def test_a_budget_of_calls_leaves_only_the_way_out() -> None:
    """Once used up, only calls that end the role's part are legal; others are answered over_budget."""
    session = opened(clinic(roles=(with_budget(NURSE, calls=1), DOCTOR)))
    session.act("nurse", call("take_temperature"))
    assert legal(session, "nurse") == [HAND_OVER]
    answer = session.act("nurse", call("listen", to="heart"))[-1]
    assert isinstance(answer, ToolAnswered)
    assert answer.fault is not None
    assert (answer.fault.code, answer.fault.message) == ("over_budget", "calls: 1 of 1 used")


def test_a_budget_of_dollars_counts_what_was_billed() -> None:
    """Tools' costs count against the budget, and so does what a model cost."""
    team = clinic(roles=(with_budget(NURSE, usd=2.0), DOCTOR))
    session = opened(team)
    session.act("nurse", call("take_temperature"))
    assert "listen" in legal(session, "nurse")
    session.spend("nurse", usd=1.0)
    session.act("nurse", call("listen", to="heart"))
    assert legal(session, "nurse") == [HAND_OVER]
    other = opened(team)
    other.act("nurse", call("listen", to="heart"))
    assert legal(other, "nurse") == [HAND_OVER]


def test_a_budget_of_tokens_counts_what_a_model_used() -> None:
    """Tokens are spent by whoever asks a model, and count the same."""
    session = opened(clinic(roles=(with_budget(NURSE, tokens=100), DOCTOR)))
    session.spend("nurse", tokens=100)
    answer = session.act("nurse", 0)[-1]
    assert isinstance(answer, ToolAnswered)
    assert answer.fault is not None
    assert answer.fault.code == "over_budget"


def test_the_ending_call_is_never_over_budget() -> None:
    """A doctor without budget can still treat."""
    session = opened(clinic(roles=(NURSE, with_budget(DOCTOR, calls=1)), turns=TURNS))
    session.act("nurse", call(HAND_OVER))
    session.spend("doctor", usd=99.0)
    session.act("doctor", call("treat", against="flu"))
    assert session.success


def test_a_refused_call_costs_nothing() -> None:
    """Only calls that were carried out count against a budget."""
    session = opened(clinic(roles=(with_budget(NURSE, calls=1), DOCTOR)))
    session.act("nurse", "nonsense")
    assert "take_temperature" in legal(session, "nurse")
