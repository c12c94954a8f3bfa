"""Worlds that nobody tuned for: supply-chain world files drawn from a seed, in the shipped format."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import yaml

from envs.supply_chain.world_file import WORLDS

SHIPPED = WORLDS / "supply_chain_v1.json"
SHARPEST, BLURREST = 0.95, 0.6
"""Range of the probability with which a tool recognizes its cause."""
NAMES = {
    "agents": ("frontdesk", "fieldwork", "decision"),
    "causes": ("flooded_road", "strike", "lost_pallet", "wrong_label", "cold_chain_break", "recall"),
    "tools": (
        ("frontdesk", "road_report"),
        ("frontdesk", "pallet_scan"),
        ("fieldwork", "union_notice"),
        ("fieldwork", "label_photo"),
        ("fieldwork", "temperature_log"),
        ("fieldwork", "recall_list"),
        ("fieldwork", "driver_call"),
    ),
}
"""The world with other names: 6 causes in place of 8, and 7 tools."""


def renumbered(seed: int) -> dict[str, Any]:
    """The shipped world with every probability, cost and payoff drawn anew around its own value."""
    chance, world = Random(seed), json.loads(SHIPPED.read_text(encoding="utf-8"))
    world["name"] = f"renumbered_{seed}"
    world["prior"] = _shares(chance, world["prior"])
    world["handoff_cost"] = round(chance.uniform(0.5, 2.5), 2)
    for tool in world["tools"].values():
        tool["cost"] = round(tool["cost"] * chance.uniform(0.6, 1.7), 2)
        rows = tool["likelihood"]
        tool["likelihood"] = {c: _normalized([p * chance.uniform(0.6, 1.5) for p in row]) for c, row in rows.items()}
    cautious = world["remedies"][-1]
    for remedy, row in world["payoff"].items():
        spread = 0.0 if remedy == cautious else 25.0
        world["payoff"][remedy] = {c: round(p + chance.uniform(-spread, spread), 1) for c, p in row.items()}
    return world


def renamed(seed: int) -> dict[str, Any]:
    """A world of other causes, tools and remedies, and another number of each."""
    chance = Random(seed)
    causes: Sequence[str] = NAMES["causes"]  # type: ignore[assignment]
    remedies = [f"repair_{c}" for c in causes]
    cautious = round(chance.uniform(5, 15), 1)
    payoff = {
        r: {c: round(chance.uniform(85, 115) if r == f"repair_{c}" else -chance.uniform(20, 70), 1) for c in causes}
        for r in remedies
    }
    return {
        "name": f"renamed_{seed}",
        "currency": "USD",
        "handoff_cost": round(chance.uniform(0.5, 2.0), 2),
        "agents": list(NAMES["agents"]),
        "prior": _shares(chance, dict.fromkeys(causes, 1.0)),
        "tools": {name: _tool(chance, owner, name, i, causes) for i, (owner, name) in enumerate(NAMES["tools"])},
        "remedies": [*remedies, "ask_a_human"],
        "payoff": {**payoff, "ask_a_human": dict.fromkeys(causes, cautious)},
    }


def _tool(chance: Random, owner: str, name: str, place: int, causes: Sequence[str]) -> dict[str, Any]:
    """A tool that recognizes one cause well, and takes another one for it now and then."""
    mine, like = causes[place % len(causes)], causes[(place + 2) % len(causes)]
    hit = {c: chance.uniform(0.03, 0.2) for c in causes}
    hit[mine], hit[like] = chance.uniform(BLURREST, SHARPEST), chance.uniform(0.2, 0.5)
    return {
        "owner": owner,
        "cost": round(chance.uniform(1.5, 6.0), 2),
        "findings": [f"{name}_clear", f"{name}_alarm"],
        "likelihood": {c: _normalized([1 - p, p]) for c, p in hit.items()},
    }


def _shares(chance: Random, weights: Mapping[str, float]) -> dict[str, float]:
    drawn = _normalized([w * chance.uniform(0.5, 2.0) for w in weights.values()])
    return dict(zip(weights, drawn, strict=True))


def _normalized(weights: Sequence[float]) -> list[float]:
    """Shares of four digits that add up to 1."""
    shares = [round(w / sum(weights), 4) for w in weights]
    largest = max(range(len(shares)), key=shares.__getitem__)
    shares[largest] = round(1.0 - (sum(shares) - shares[largest]), 4)
    return shares


def experiment_for(world: Mapping[str, Any], shipped: Path, folder: Path) -> Path:
    """Write the world, and the shipped experiment with nothing changed but the world and the agents' names."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.resolve() / f"{world['name']}.json"
    path.write_text(json.dumps(world, indent=1), encoding="utf-8")
    experiment = yaml.safe_load(shipped.read_text(encoding="utf-8"))
    policies = list(experiment["policies"].values())
    experiment["name"] = world["name"]
    experiment["team"]["args"]["world"] = str(path)
    experiment["policies"] = dict(zip(world["agents"], policies, strict=True))
    file = folder / f"{world['name']}.yaml"
    file.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
    return file
