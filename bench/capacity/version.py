"""The supply-chain team as it is before training, exported: what it has learnt costs nothing more to run."""

from pathlib import Path

from assembly.build import Build
from assembly.loading import load
from assembly.versions import Version, load_version
from bench.runs import ROOT

EXPERIMENT = ROOT / "experiments" / "supply_chain.yaml"
EPISODES = 60
"""Random episodes that the features are taken from."""


def untrained(directory: Path) -> Version:
    """Write the version there, and load it."""
    from trainers.exporting import Exported, export
    from trainers.measure import featurizers, measure
    from trainers.rllib.algorithm import seats

    build = Build(load(EXPERIMENT, []))
    sight = featurizers(build, measure(build, EPISODES))
    seated = seats(build, sight)
    parts = Exported(
        actors={n: s.actor() for n, s in seated.items()},
        specs={n: s.spec for n, s in seated.items()},
        featurizers=sight,
        statistics={},
    )
    export(build, parts, directory)
    return load_version(directory)
