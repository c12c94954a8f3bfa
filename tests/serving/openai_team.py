"""The little shop as a version to serve: its clerk writes calls, its buyer chooses them, both tiny language models."""

from pathlib import Path
from typing import Any

import torch

from assembly.build import Build
from assembly.loading import load
from policies.lm.playing import policy_of
from policies.playing import Playable
from tests.lm.shop import FILE, TINY, sight
from trainers.checkpoints import TrainerState
from trainers.evaluate import try_out
from trainers.exporting import Exported, export, write_lineage
from trainers.rllib.algorithm import seats

SHOP = "little_shop"


def shop_version(directory: Path, seed: int) -> dict[str, Playable]:
    """Export untrained tiny models as a run exports its trained ones; returns who plays, to compare with."""
    roles = {"buyer": "choose", "clerk": "generate"}
    keys = {r: f"{{kind: causal_lm, tiny: {TINY}, max_tokens: 400, mode: {m}}}" for r, m in roles.items()}
    build = Build(load(FILE, [f"policies={{{', '.join(f'{r}: {k}' for r, k in keys.items())}}}"]), FILE.parent)
    seen = sight(build, directory.parent / "run")
    seated: dict[str, Any] = seats(build, seen)
    chance: Any = torch
    chance.manual_seed(seed)
    actors = {name: seat.actor() for name, seat in seated.items()}
    for actor in actors.values():
        with torch.no_grad():
            for p in actor.parameters():
                p.add_(0.1 * torch.randn_like(p))  # a mind of its own
    players: dict[str, Playable] = {n: policy_of(a, seen[n]) for n, a in actors.items()}
    parts = Exported(
        actors=actors,
        specs={n: s.spec for n, s in seated.items()},
        featurizers=seen,
        statistics={},
        sampled=try_out(build, players, range(4)).sampled,
    )
    export(build, parts, directory)
    write_lineage(directory, build, TrainerState(), directory.parent)
    return players
