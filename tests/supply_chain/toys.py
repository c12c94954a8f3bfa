"""World files that nobody wrote by hand, and playing a team through its environment."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from envs.scenarios import Generated
from envs.session import Session
from envs.supply_chain.world_file import WORLDS
from envs.team_env import TeamEnv
from rewards.mix import Mix, Weighted
from runtime.types import Observation, ScriptedPolicy, Team

SHIPPED: dict[str, Any] = json.loads((WORLDS / "supply_chain_v1.json").read_text(encoding="utf-8"))

OWNERS = (("scout", 2), ("clerk", 0), ("auditor", 2))
"""Agents and how many tools each has; the last agent, "boss", has none."""


def odds(chance: Random, count: int) -> list[float]:
    raw = [chance.random() + 0.02 for _ in range(count)]
    return [x / sum(raw) for x in raw]


def drawn_world(seed: int) -> dict[str, Any]:
    """Other names and other numbers than the shipped world's, one agent more, one agent without tools."""
    chance = Random(seed)
    causes = ["flood", "strike", "theft"]
    tools: dict[str, Any] = {}
    for owner, count in OWNERS:
        for i in range(count):
            findings = [f"{owner} sign {w}" for w in ("one", "two", "three")[: 2 + i]]
            likelihood = {c: odds(chance, len(findings)) for c in causes}
            tools[f"{owner}_look-{i}"] = {
                "owner": owner, "cost": chance.uniform(0, 6), "findings": findings, "likelihood": likelihood
            }  # fmt: skip
    remedies = ["pump_out", "call strikers", "change locks", "wait"]
    return {
        "name": f"drawn_{seed}", "currency": "USD", "handoff_cost": chance.uniform(0, 3),
        "agents": [*(o for o, _ in OWNERS), "boss"], "prior": dict(zip(causes, odds(chance, 3), strict=True)),
        "tools": tools, "remedies": remedies,
        "payoff": {r: {c: chance.uniform(-80, 100) for c in causes} for r in remedies},
    }  # fmt: skip


def written(world: Mapping[str, Any], folder: Path) -> str:
    path = folder / f"{world['name']}.json"
    path.write_text(json.dumps(world), encoding="utf-8")
    return str(path)


def judge(team: Team) -> Mix:
    return Mix([Weighted(t) for t in team.terms.values()])


def at_random(seen: Observation, chance: Random) -> int:
    return chance.choice([i for i, ok in enumerate(seen.mask) if ok])


def play(team: Team, policies: Callable[[str], ScriptedPolicy], cases: int, seed: int = 5) -> list[float]:
    """The return of each case (USD), played through the environment by its integer actions."""
    env = TeamEnv(team, Generated(team, "eval", seed), judge(team))
    chance = Random(seed)
    returns: list[float] = []
    for case in range(cases):
        env.reset(options={"episode": case})
        while not env.session.ended:
            seen = env.session.observe(env.agent_selection)
            call = policies(env.agent_selection)(seen, chance)
            env.step(call if isinstance(call, int) else seen.candidates.index(call))
        assert not env.session.truncated
        returns.append(env.team_return)
    return returns


def within(returns: list[float], expected: float, sigmas: float = 3.5) -> bool:
    """Whether the mean is as far from the expected return as chance allows (1 in 2,000 beyond)."""
    mean = sum(returns) / len(returns)
    spread = math.sqrt(sum((r - mean) ** 2 for r in returns) / (len(returns) - 1))
    return abs(mean - expected) <= sigmas * spread / math.sqrt(len(returns)) + 1e-9


def ask_all(team: Team, case: int) -> Session:
    """A case in which every tool has been asked once, in order."""
    assert team.generate is not None
    session = Session(team, team.generate("eval", 7, case))
    while session.to_act[0] != team.roles[-1].name:
        agent = session.to_act[0]
        session.act(agent, next(i for i, ok in enumerate(session.observe(agent).mask) if ok))
    return session
