"""The supply chain as the speed rows have it, in tiny sizes and without Ray."""

from pathlib import Path

import pytest

from bench.settings import Contest, contest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def supply_chain() -> Contest:
    sizes = ("ppo.train_batch_size=256", "ppo.minibatch_size=64", "ppo.num_epochs=2", "resources.envs_per_runner=8")
    return contest(ROOT / "experiments" / "supply_chain.yaml", sizes, episodes=20)


@pytest.fixture(scope="package")
def relay() -> Contest:
    sizes = ("ppo.train_batch_size=192", "ppo.minibatch_size=32", "ppo.num_epochs=4")
    return contest(ROOT / "bench" / "experiments" / "relay.yaml", sizes, episodes=10)
