"""The JSON Schema contracts that a session holds calls and answers to, each made once."""

from collections.abc import Mapping
from typing import Any

from runtime.tools import Contract
from runtime.types import HAND_OVER, Pipeline, Team

_CONTRACTS: dict[int, tuple[Mapping[str, Any], Contract]] = {}


def contract_of(schema: Mapping[str, Any]) -> Contract:
    """The schema's contract, made once. Keyed by identity: schemas live as long as their team, and are held here."""
    known = _CONTRACTS.get(id(schema))
    if known is None:
        known = _CONTRACTS[id(schema)] = (schema, Contract(schema))
    return known[1]


_NOTHING: Mapping[str, Any] = {"type": "object", "additionalProperties": False}


def pass_schema(team: Team, call: str) -> Mapping[str, Any]:
    """The JSON Schema of what goes with a call that hands over, hands back or passes."""
    turns = team.turns
    if not isinstance(turns, Pipeline) or turns.handoff == "notes" or call != HAND_OVER:
        return _NOTHING
    return _verdict_schema(turns.verdicts)


_VERDICTS: dict[tuple[str, ...], Mapping[str, Any]] = {}


def _verdict_schema(verdicts: tuple[str, ...]) -> Mapping[str, Any]:
    return _VERDICTS.setdefault(
        verdicts,
        {
            "type": "object",
            "properties": {"suspicion": {"enum": list(verdicts)}},
            "required": ["suspicion"],
            "additionalProperties": False,
        },
    )
