"""Ways to play any team: chance, extremes, one tool only, each playable baseline, and roles mixed up."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, cast

from rewards.audit.playing import Seats
from runtime.records import Json, ToolCall
from runtime.types import (
    HAND_BACK,
    HAND_OVER,
    PASS_TURN,
    AgentId,
    Observation,
    Scenario,
    ScriptedPolicy,
    Team,
)

PASSES = (HAND_OVER, HAND_BACK, PASS_TURN)
ALWAYS = "always "
"""Begins the names of players that call one tool whenever they can."""
GOLD = ("gold", "optimal")
"""Baselines that earn the most there is, by the names a team may give them."""


class NoLegalCall(Exception):
    """An agent came to a turn with nothing that it may call."""


def legal(seen: Observation) -> list[int]:
    """The legal candidates. Raises NoLegalCall where there is none."""
    found = [i for i, ok in enumerate(seen.mask) if ok]
    if not found:
        raise NoLegalCall(f"{seen.agent} has no legal call at its turn {seen.turn}")
    return found


def at_random(seen: Observation, chance: Random) -> int:
    """Uniform over the legal calls."""
    return chance.choice(legal(seen))


def first_legal(seen: Observation, _chance: Random) -> int:
    """The first legal call."""
    return legal(seen)[0]


def last_legal(seen: Observation, _chance: Random) -> int:
    """The last legal call."""
    return legal(seen)[-1]


def empty(team: Team) -> ScriptedPolicy:
    """Ends the episode as fast as it can, and asks nothing."""

    def choose(seen: Observation, _chance: Random) -> int:
        found = legal(seen)
        ending = [i for i in found if _ends(team, seen.candidates[i])]
        onward = [i for i in found if seen.candidates[i].tool in (HAND_OVER, PASS_TURN)]
        return (ending or onward or found)[0]

    return choose


def only(team: Team, tool: str) -> ScriptedPolicy:
    """Calls one tool whenever it can, and else gets out of the way."""
    otherwise = empty(team)

    def choose(seen: Observation, chance: Random) -> int | ToolCall:
        wanted = [i for i in legal(seen) if seen.candidates[i].tool == tool]
        return chance.choice(wanted) if wanted else otherwise(seen, chance)

    return choose


def ask_everything(team: Team) -> ScriptedPolicy:
    """Calls every tool that ends nothing, then passes the case on, then ends it by chance."""

    def choose(seen: Observation, chance: Random) -> int:
        found = legal(seen)
        asks = [i for i in found if not _ends(team, seen.candidates[i]) and seen.candidates[i].tool not in PASSES]
        onward = [i for i in found if seen.candidates[i].tool in (HAND_OVER, PASS_TURN)]
        fresh = asks if not team.repeats else [i for i in asks if not _asked(seen, seen.candidates[i])]
        return chance.choice(fresh or onward or found)

    return choose


def _asked(seen: Observation, call: ToolCall) -> bool:
    """Whether an answer to that very call is already before the agent."""
    texts = [s.text for s in seen.seen if s.kind in ("answer", "error") and s.source == call.tool]
    values = [str(v) for v in call.args.values()]
    return any(all(v in t for v in values) for t in texts)


def _ends(team: Team, call: ToolCall) -> bool:
    return call.tool not in PASSES and team.tools[call.tool].ends


def swapped(policies: Seats) -> Seats:
    """Every role played by the rule of the next one; a call it does not have becomes a legal one by chance."""
    names = list(policies)

    def mixed_up(rule: ScriptedPolicy, name: AgentId) -> ScriptedPolicy:
        def choose(seen: Observation, chance: Random) -> int:
            try:
                call = rule(dataclasses.replace(seen, agent=name), chance)
            except Exception:  # noqa: BLE001 - the rule was written for another role
                return at_random(seen, chance)
            place = call if isinstance(call, int) else _place(seen, call)
            return place if place in legal(seen) else at_random(seen, chance)

        return choose

    return {a: mixed_up(policies[n], n) for a, n in zip(names, names[1:] + names[:1], strict=True)}


def _place(seen: Observation, call: ToolCall) -> int:
    return next((i for i, c in enumerate(seen.candidates) if c == call), -1)


def following(calls: Mapping[AgentId, Sequence[int | ToolCall]]) -> Callable[[Observation, Random], int | ToolCall]:
    """Makes each agent's calls in their order; by chance once they are used up."""

    def choose(seen: Observation, chance: Random) -> int | ToolCall:
        own = calls.get(seen.agent, ())
        return own[seen.turn] if seen.turn < len(own) else at_random(seen, chance)

    return choose


def gold_calls(scenario: Scenario) -> dict[AgentId, list[ToolCall]] | None:
    """The calls that a scenario names as right, under ``gold``: ``[{"agent", "tool", "args"?}, …]``."""
    found = scenario.truth.get("gold", scenario.visible.get("gold"))
    if not isinstance(found, list) or not found:
        return None
    by_agent: dict[AgentId, list[ToolCall]] = {}
    for each in cast("list[Any]", found):
        if not isinstance(each, dict) or not {"agent", "tool"} <= set(cast("dict[str, Json]", each)):
            return None
        call = cast("dict[str, Any]", each)
        by_agent.setdefault(str(call["agent"]), []).append(ToolCall(tool=call["tool"], args=call.get("args", {})))
    return by_agent


def players_of(team: Team) -> dict[str, Seats]:
    """All players by name, baselines by their own."""
    agents = [r.name for r in team.roles]
    rules: dict[str, ScriptedPolicy] = {
        "random": at_random,
        "first_legal": first_legal,
        "last_legal": last_legal,
        "empty": empty(team),
        "ask_everything": ask_everything(team),
    }
    used = dict.fromkeys(t for r in team.roles for t in r.tools)
    rules |= {f"{ALWAYS}{tool}": only(team, tool) for tool in used}
    found: dict[str, Seats] = {name: dict.fromkeys(agents, rule) for name, rule in rules.items()}
    for name, baseline in team.baselines.items():
        if baseline.policies is not None:
            found[name] = baseline.policies
            if len(agents) > 1:
                found[f"swapped {name}"] = swapped({a: baseline.policies[a] for a in agents})
    return found
