"""From a typed function to a tool, and from text to a call; and nothing an agent says ever raises."""

import json
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from envs.candidates import candidates
from runtime.errors import TeamError
from runtime.records import RECORD, Fault, ToolAnswered, ToolCall
from runtime.tools import Contract, canonical, finite_calls, parse_call, shortened, tool
from runtime.types import HAND_OVER, PASS_TURN
from tests.envs.toys import NURSE, Clinic, at_once, call, clinic, opened, rounds, take_temperature, tools, weigh

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    st.sampled_from(["take_temperature", "listen", "weigh", "treat", "hand_over", "hand_back", "pass_turn"]) | st.text()
)
CALLS = st.builds(
    ToolCall, tool=NAMES, args=st.dictionaries(st.text() | st.sampled_from(["to", "times"]), ANY_JSON, max_size=3)
)
TEXTS = st.text() | ANY_JSON.map(json.dumps) | CALLS.map(lambda c: json.dumps({"tool": c.tool, "args": dict(c.args)}))
ACTIONS = st.integers() | TEXTS | CALLS | st.none() | st.floats() | ANY_JSON
WEIGHING = clinic(
    tools=tools(tool(weigh)),
    roles=(
        NURSE.__class__(
            name="nurse", brief="b", tools=("take_temperature", "listen", "weigh"), calls=(call("take_temperature"),)
        ),
        clinic().roles[1],
    ),
)


class Level(Enum):
    LOW = "low"
    HIGH = "high"


def ask(
    world: Clinic,
    how: Literal["softly", "loudly"],
    level: Level,
    again: bool = False,
    times: Annotated[int, Field(gt=0)] = 1,
) -> str:
    """Ask something."""
    return "yes"


def test_a_typed_function_becomes_a_tool_with_contracts() -> None:
    """Names, types, defaults, bounds and docstring are the function's own; the world is not an argument."""
    made = tool(ask, cost_usd=0.5)
    assert (made.name, made.description, made.cost_usd) == ("ask", "Ask something.", 0.5)
    assert list(made.input_schema["properties"]) == ["how", "level", "again", "times"]
    assert made.input_schema["required"] == ["how", "level"]
    assert made.input_schema["additionalProperties"] is False
    assert made.input_schema["properties"]["times"]["exclusiveMinimum"] == 0
    assert made.output_schema == {"type": "string"}


def test_what_cannot_be_derived_is_refused_by_name() -> None:
    """No docstring, no hint, no return type, *args: each is said, with the tool's name."""

    def silent(world: Clinic) -> str:
        return ""

    def untyped(world: Clinic, x) -> str:
        """Do."""
        return ""

    def endless(world: Clinic, *x: int) -> str:
        """Do."""
        return ""

    def secret(world: Clinic):
        """Do."""

    for function, what in (
        (silent, "docstring"),
        (untyped, "x has no type hint"),
        (endless, "ordinary"),
        (secret, "return"),
    ):
        with pytest.raises(TeamError, match=rf"{function.__name__}.*{what}"):
            tool(function)


def test_finite_arguments_are_listed_in_a_fixed_order() -> None:
    """Enumerations and truth values multiply; what has a default and cannot be listed keeps it."""
    found = finite_calls(tool(ask))
    assert found is not None
    assert len(found) == 2 * 2 * 2
    assert found[0] == call("ask", how="softly", level="low", again=True)
    assert finite_calls(tool(weigh)) is None


def test_a_role_with_free_arguments_must_list_its_calls() -> None:
    """Nothing is guessed: the message says which tool, and what to write."""
    team = clinic(
        tools=tools(tool(weigh)), roles=(NURSE, clinic().roles[1].__class__(name="doctor", brief="b", tools=("weigh",)))
    )
    with pytest.raises(TeamError, match="role doctor: tool weigh"):
        candidates(team, team.role("doctor"))


def test_passing_the_case_on_comes_last_among_the_candidates() -> None:
    """A pipeline's roles can hand over; where turns go round, who may run dry can let one pass."""
    assert candidates(clinic(), NURSE)[-1].tool == HAND_OVER
    assert candidates(rounds(), NURSE)[-1].tool == PASS_TURN
    assert PASS_TURN not in [c.tool for c in candidates(at_once(repeats=True), NURSE)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "3",
        '"x"',
        '{"tool": 3}',
        "{}",
        '{"tool": "x", "args": []}',
        '{"tool": "x", "and": 1}',
        "[" * 99_999,
    ],
)
def test_text_that_is_no_call_is_a_malformed_fault(text: str) -> None:
    """A model's nonsense is a value, not an exception."""
    found = parse_call(text)
    assert isinstance(found, Fault)
    assert found.code == "malformed"


def test_text_that_is_a_call_is_read() -> None:
    """Arguments may be left out."""
    assert parse_call('{"tool": "x"}') == call("x")
    assert parse_call('{"tool": "x", "args": {"a": [1]}}') == call("x", a=[1])


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTIONS, max_size=6), st.sampled_from(["flu", "gout"]))
def test_nothing_an_agent_does_raises_out_of_act(actions: list[Any], ill: Any) -> None:
    """Any integer, any text, any JSON, any call: answered, and every answered error is counted."""
    session = opened(WEIGHING, ill=ill)
    for action in actions:
        if session.ended:
            break
        session.act(session.to_act[0], action)
    errors = [r for r in session.records if isinstance(r, ToolAnswered) and not r.ok]
    assert session.invalid.total() == len(errors)
    assert all(r.fault is not None for r in errors)


@settings(max_examples=100, deadline=None)
@given(ANY_JSON)
def test_any_answer_of_a_tool_is_kept_or_refused_but_never_raises(value: Any) -> None:
    """Whatever JSON a tool answers, the agent sees it or a fault."""

    def oracle(world: Clinic) -> Any:
        """Speak."""
        return value

    team = clinic(
        tools=tools(tool(oracle)),
        roles=(NURSE.__class__(name="nurse", brief="b", tools=("oracle",)), clinic().roles[1]),
    )
    session = opened(team)
    session.act("nurse", call("oracle"))
    assert "oracle" in session.observe("nurse").text


def test_an_answer_that_is_no_json_deep_down_does_not_raise() -> None:
    """Keys that are no text and values that hold themselves become their text."""
    loop: list[Any] = []
    loop.append(loop)
    assert canonical({(1, 2): 3}) == "{(1, 2): 3}"
    assert canonical(loop) == "[[...]]"


def test_a_flood_is_cut_and_says_so() -> None:
    """An answer of megabytes reaches the agent as its beginning and its length."""
    short = shortened("x" * 1_000_000)
    assert short["truncated"] is True
    assert short["characters"] == 1_000_002
    assert len(short["beginning"]) < 10_000


@pytest.mark.parametrize(
    ("hint", "raw", "coerced"),
    [
        (float, "25.3", 25.3), (int, " 7 ", 7), (bool, "True", True), (list[float], ["1", "2.5"], [1.0, 2.5]),
        (dict[str, float], {"a": "1"}, {"a": 1.0}), (float | None, "3", 3.0), (str | float, "3", "3"),
        (float, "warm", "warm"),
        (list[dict[str, int]], [{"a": "1"}], [{"a": 1}]), (bool, "yes", "yes"),
    ],
)  # fmt: skip
def test_a_text_is_coerced_to_what_the_schema_asks_for(hint: Any, raw: Any, coerced: Any) -> None:
    """Numbers and truth values in texts are read, wherever they stand; anything else is left as it is."""

    def measure(world: Clinic) -> Any:
        """Measure."""

    measure.__annotations__["return"] = hint
    assert Contract(tool(measure).output_schema).coerce(raw) == coerced


def test_a_problem_says_where() -> None:
    """The path leads to the place in the arguments."""
    contract = Contract({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}})
    assert contract.problem({"a": [1, "x"]}) == ('"x" is not of type "number"', "$.a[1]")
    assert contract.problem({"a": [1, 2]}) is None


def test_records_of_refused_calls_go_through_json() -> None:
    """What went wrong can be written down and read back."""
    session = opened()
    session.act("nurse", '{"tool": "listen", "args": {"to": "feet"}}')
    assert [RECORD.validate_json(RECORD.dump_json(r)) for r in session.records] == session.records  # pyright: ignore[reportArgumentType]


def test_a_tool_may_have_another_name() -> None:
    """The name is the tool's, the docstring the function's."""
    assert tool(take_temperature, name="measure").name == "measure"
