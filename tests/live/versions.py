"""A version to run live: the supply-chain team with fresh weights, exported as a run exports it."""

from pathlib import Path

import torch

from assembly.build import Build
from assembly.loading import load
from policies.encoder import Actor
from policies.playing import Playable
from trainers.evaluate import try_out
from trainers.exporting import Exported, export
from trainers.measure import featurizers, measure
from trainers.rllib.algorithm import seats

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "supply_chain.yaml"


def fresh_version(directory: Path, seed: int = 0) -> tuple[Build, dict[str, Playable]]:
    """Export untrained policies; returns the experiment's parts and who plays, to compare with."""
    from policies.playing import EncoderPolicy

    build = Build(load(EXPERIMENT, []))
    sight = featurizers(build, measure(build, 60))
    seated = seats(build, sight)
    torch.manual_seed(seed)
    actors = {name: Actor(seat.spec) for name, seat in seated.items()}
    for actor in actors.values():
        with torch.no_grad():
            for parameter in actor.parameters():
                parameter.mul_(4)  # decisions that differ from case to case, and are no ties
    policies = {n: EncoderPolicy(a, seated[n].featurize) for n, a in actors.items()}
    players: dict[str, Playable] = {a: policies[build.policy_of[a]] for a in build.learners}
    parts = Exported(
        actors=actors,
        specs={n: s.spec for n, s in seated.items()},
        featurizers=sight,
        statistics={},
        sampled=try_out(build, players, range(6)).sampled,
    )
    export(build, parts, directory)
    return build, players
