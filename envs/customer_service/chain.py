"""The team: intent, then retrieval, then the reply."""

from functools import partial
from typing import Any

from envs.customer_service import desk, expert
from envs.customer_service.cases import make_case
from envs.customer_service.library import INTENTS
from envs.customer_service.pay import TERMS
from runtime.errors import TeamError
from runtime.tools import tool
from runtime.types import Baseline, Pipeline, Role, Scenario, Team

LOOKUP_USD = 0.15
"""A look into the shop's records, in US dollars."""
SEARCH_USD = 0.05
"""A search of the knowledge base, in US dollars."""

ROLES = (
    Role(
        name="intent",
        brief="Find out what the customer wants and put it down with classify. Where the message fits several intents, "
        "the order's status tells which is meant. Then hand over.",
        tools=("lookup_order", "classify"),
    ),
    Role(
        name="retriever",
        brief="Fetch the article that answers the customer. All that you fetch takes from the room for the reply, so "
        "fetch enough and no more. Then hand over.",
        tools=("search",),
    ),
    Role(
        name="replier",
        brief="Answer with one of the fetched articles, as fully as the room allows: a reply longer than its room is "
        "cut. Promise no money unless it is due. Without a fitting article, leave the case to a person.",
        tools=("reply", "leave_to_person"),
    ),
)


def team(context_tokens: int = 260, unclear: float = 0.4) -> Team:
    """The customer service of a shop.

    Args:
        context_tokens: what fits in one reading: all articles that are fetched, and the reply (words and marks).
        unclear: the share of messages that fit several intents, so that only the order's status decides; 0 to 1.

    Raises:
        TeamError: an argument is out of its range.
    """
    if context_tokens < 1 or not 0 <= unclear <= 1:
        raise TeamError(
            f"customer_service: context_tokens {context_tokens} must be positive, unclear {unclear} in 0..1"
        )
    return Team(
        name="customer_service",
        roles=ROLES,
        tools={
            "lookup_order": tool(desk.lookup_order, cost_usd=LOOKUP_USD),
            "classify": tool(desk.classify),
            "search": tool(desk.search, cost_usd=SEARCH_USD),
            "reply": tool(desk.reply, ends=True),
            "leave_to_person": tool(desk.leave_to_person, ends=True),
        },
        turns=Pipeline(order=tuple(r.name for r in ROLES)),
        world=partial(desk.Desk, context_tokens=context_tokens),
        generate=partial(_generate, unclear=unclear),
        terms=TERMS,
        baselines={"random": Baseline(), "expert": Baseline(policies=expert.POLICIES)},
        repeats=False,
        opening_reveals=frozenset({"intent", "article", "status"}),  # what customers ask for says much about all three
        case_types=_case_types(),
    )


def _generate(split: str, seed: int, index: int, unclear: float) -> Scenario:
    return make_case(split, seed, index, unclear)


def _case_types() -> dict[str, Any]:
    text = {"type": "string", "minLength": 1}
    truth: dict[str, Any] = {"intent": {"enum": list(INTENTS)}, "article": text, "status": text}
    return {"visible": _object({"message": text, "order": text}), "truth": _object(truth)}


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
