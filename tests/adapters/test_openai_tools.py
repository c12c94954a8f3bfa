"""OpenAI tool specs and the functions of a loop around a chat API are tools; where the two disagree, both are named."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from envs import from_openai_tools
from envs.check import check_team
from envs.session import Session
from runtime.errors import TeamError
from runtime.records import ToolAnswered
from runtime.toolbox.calling import carried_out
from runtime.types import Outside, Pipeline, Role, Scenario, Team
from tests.adapters.cases import call, case, generate, settled


def spec(name: str, about: str = "What it does.", required: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    """A spec as ``tools=`` of the Chat Completions API takes it."""
    parameters = {"type": "object", "properties": fields, "required": list(fields) if required is None else required}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


TEXT = {"type": "string"}
HOW = {"type": "string", "enum": ["refund", "explain"]}


class Order(BaseModel):
    """What is known of an order."""

    name: str
    cents: int


def get_order(order: str) -> Order:
    """Look an order up."""
    return Order(name=order, cents=250)


async def refund(how: Literal["refund", "explain"], note: str = "") -> str:
    """Settle a case."""
    return f"{how}{note}"


def test_specs_and_functions_are_tools() -> None:
    """Description and schema as the spec says, the answer as the function gives it, awaited where it has to be."""
    tools = from_openai_tools(
        [spec("get_order", "Look up.", order=TEXT), spec("refund", required=["how"], how=HOW, note=TEXT)],
        [get_order, refund],
        ends=["refund"],
        cost_usd={"get_order": 0.2},
        outside={"refund": Outside(timeout_s=5)},
    )
    looked, settle = tools["get_order"], tools["refund"]
    assert (looked.description, looked.cost_usd, looked.ends) == ("Look up.", 0.2, False)
    assert looked.run(None, order="A1") == {"name": "A1", "cents": 250}
    assert looked.input_schema["additionalProperties"] is False
    assert settle.run(None, how="refund", note="!") == "refund!"
    assert (settle.ends, settle.outside) == (True, Outside(timeout_s=5))


@pytest.mark.parametrize(
    "given",
    [
        {"name": "get_order", "parameters": {"properties": {"order": TEXT}, "required": ["order"]}},
        {"type": "function", "name": "get_order", "parameters": {"properties": {"order": TEXT}, "required": ["order"]}},
        spec("get_order", "", order=TEXT),
    ],
)
def test_every_form_of_a_spec_is_read(given: dict[str, Any]) -> None:
    """Of both APIs, and bare; a description that is missing is the function's own."""
    (tool,) = from_openai_tools([given], {"get_order": get_order}).values()
    assert tool.description == "Look an order up."
    assert tool.input_schema["required"] == ["order"]


def test_a_function_may_act_on_the_world() -> None:
    """One whose first parameter is called so is given it; no spec tells of it."""

    def settle(world: dict[str, str], how: str) -> str:
        world["did"] = how
        return "done"

    world: dict[str, str] = {}
    (tool,) = from_openai_tools([spec("settle", how=HOW)], [settle]).values()
    assert tool.run(world, how="refund") == "done"
    assert world == {"did": "refund"}


def test_an_idempotency_key_stands_in_no_spec() -> None:
    """It is the engine's to give; a function that cannot be given it is refused."""

    def pay(how: str, key: str) -> str:
        return f"{how} {key}"

    outside = {"pay": Outside(key="key")}
    (tool,) = from_openai_tools([spec("pay", how=HOW)], [pay], outside=outside).values()
    assert carried_out(tool, None, {"how": "refund"}, "session/clerk/0") == "refund session/clerk/0"
    with pytest.raises(TeamError, match="tool pay: the function has no parameter 'token' to give"):
        from_openai_tools([spec("pay", how=HOW)], [pay], outside={"pay": Outside(key="token")})


def test_they_make_a_team() -> None:
    """The tools of a chat loop, with roles, cases and a world."""

    class Desk:
        """What the tools act on."""

        def __init__(self, scenario: Scenario) -> None:
            self.scenario, self.did = scenario, ""

        def outcome(self) -> tuple[dict[str, str], bool]:
            return {"did": self.did}, self.did == self.scenario.truth["how"]

    def look(world: Desk) -> str:
        return str({"refund": "lost", "explain": "found"}[world.scenario.truth["how"]])

    def settle(world: Desk, how: str) -> str:
        world.did = how
        return how

    tools = from_openai_tools([spec("look"), spec("settle", how=HOW)], [look, settle], ends=["settle"])
    clerk, writer = Role(name="clerk", brief="Look.", tools=("look",)), Role(name="writer", brief="", tools=("settle",))
    team = Team(
        name="desk",
        roles=(clerk, writer),
        tools=tools,
        turns=Pipeline(order=("clerk", "writer")),
        world=Desk,
        generate=generate,
        terms={"settled": settled},
        repeats=False,
    )
    report = check_team(team, episodes=4)
    assert report.ok, str(report)
    session = Session(team, case("A1"))
    session.act("clerk", call("look"))
    session.act("clerk", call("hand_over"))
    session.act("writer", call("settle", how="refund"))
    assert session.success
    assert [r.value for r in session.records if isinstance(r, ToolAnswered)] == ["lost", "refund"]


def needs_more(order: str, shop: str) -> str:
    return order + shop


def takes_less() -> str:
    return ""


def takes_a_number(order: int) -> str:
    return str(order)


def one_of(how: Literal["refund"]) -> str:
    return how


def by_place(order: str, /) -> str:
    return order


DISAGREE = {
    "no function": ([spec("get_order", order=TEXT)], {}, "tool get_order: has a spec, and no function"),
    "no spec": ([], {"get_order": get_order}, "tool get_order: has a function, and no spec"),
    "two specs": ([spec("f"), spec("f")], {"f": takes_less}, "tool f: has two specs"),
    "a parameter too few": (
        [spec("f", order=TEXT)],
        {"f": needs_more},
        "tool f: the function needs 'shop', and the spec has no such",
    ),
    "a parameter too many": (
        [spec("f", order=TEXT)],
        {"f": takes_less},
        "tool f: the spec has the parameter 'order', and the function",
    ),
    "optional only in the spec": (
        [spec("f", required=[], order=TEXT)],
        {"f": get_order},
        "the function needs 'order', and the spec lets it",
    ),
    "another type": (
        [spec("f", order=TEXT)],
        {"f": takes_a_number},
        "tool f: 'order' is of type string in the spec, and the function takes",
    ),
    "another choice": (
        [spec("f", how=HOW)],
        {"f": one_of},
        "tool f: 'how' may be 'explain' by the spec, and the function",
    ),
    "by place only": ([spec("f", order=TEXT)], {"f": by_place}, "the function's parameter 'order' cannot be given"),
    "no schema": ([spec("f", order={"type": "texts"})], {"f": get_order}, "tool f: its parameters are no JSON Schema"),
    "nothing said": ([spec("f", "", order=TEXT)], {"f": lambda order: order}, "neither the spec nor the function says"),
    "no spec at all": ([{"type": "web_search"}], {}, "a spec is"),
}


@pytest.mark.parametrize("what", DISAGREE)
def test_what_disagrees_is_refused_by_name(what: str) -> None:
    """Before anything is built on it."""
    specs, functions, told = DISAGREE[what]
    with pytest.raises(TeamError) as refused:
        from_openai_tools(specs, functions)
    assert told in str(refused.value)


def test_all_disagreements_are_told_at_once() -> None:
    """Of every tool, and of what is named beside them."""
    with pytest.raises(TeamError) as refused:
        from_openai_tools(
            [spec("f", order=TEXT), spec("g", how=HOW)], {"f": takes_a_number, "h": get_order}, ends=["k"]
        )
    told = str(refused.value)
    assert all(f"tool {name}:" in told for name in "fgh")
    assert "ends names 'k'" in told


def test_a_number_may_be_whole() -> None:
    """A spec's integer is a number to the function; types that no schema has are not looked at."""

    def pay(usd: float, **more: Any) -> float:
        """Pay."""
        return usd

    fields = {"usd": {"type": "integer"}, "note": TEXT}
    (tool,) = from_openai_tools([spec("pay", **fields)], [pay]).values()
    assert tool.run(None, usd=3, note="x") == 3
