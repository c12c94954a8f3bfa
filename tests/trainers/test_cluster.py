"""A cluster of several nodes: samplers lie on other nodes than the trainer, and a node may die while they sample."""

import gc
import importlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import WaitUntil
from tests.trainers.commands import SHOP, started
from trainers.rllib.algorithm import SHARE

ROOM = {"num_cpus": int(2 * SHARE), "object_store_memory": 100_000_000}
"""A node on which two samplers have room, and no third."""
SETTINGS = (
    "resources.env_runners=4", "stop.iterations=60", "evaluation.every=100", "evaluation.role_swap=false",
    "scenarios.eval.count=5", "telemetry.tensorboard=false",
)  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    # Ray leaves its processes and files to themselves.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without room for samplers, and two nodes for two each."""
    made = importlib.import_module("ray.cluster_utils").Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100_000_000}
    )
    for _ in range(2):
        made.add_node(**ROOM)
    made.wait_for_nodes()
    yield made
    made.shutdown()
    del made
    gc.collect()  # it leaves its files open: said here, not when the tests end


def test_a_cluster_nobody_named_is_left_alone(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would join the latest cluster of this machine, or the one in RAY_ADDRESS: the file names none."""
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    run = started(SHOP, "--out", tmp_path, "--set", "stop.iterations=1", "--set", "gates.live=true")
    out, err = run.communicate(timeout=600)
    assert run.returncode == 0, out[-2000:] + err


def _metrics(out: Path) -> list[dict[str, Any]]:
    lines = [line for file in out.glob("*/*/metrics.jsonl") for line in file.read_text().splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith("\n")]


def test_a_node_dies_while_its_sampler_plays(cluster: Any, tmp_path: Path, wait_until: WaitUntil) -> None:
    """The run goes on where there is room, and every sample is counted once."""
    sets = [part for s in (*SETTINGS, f"resources.ray_address='{cluster.address}'") for part in ("--set", s)]
    run = started(SHOP, "--out", tmp_path, *sets)
    try:
        wait_until(lambda: len(_metrics(tmp_path)) >= 3 or run.poll() is not None, "three iterations", within_s=400)
        assert run.poll() is None, run.communicate()
        cluster.add_node(**ROOM)
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        out, err = run.communicate(timeout=400)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 0, out[-2000:] + err
    metrics = _metrics(tmp_path)
    assert len(metrics) == 60
    (directory,) = (p.parent for p in tmp_path.glob("*/*/result.json"))
    counted = _counted(directory / "version" / "standardizer.json") - _counted(
        directory / "prepared.json", "standardizer"
    )
    assert counted == metrics[-1]["env_steps"], "each sampled step was standardized once, each standardized one sampled"
    partly = 0
    for before, now in zip([{"env_steps": 0}, *metrics], metrics, strict=False):
        episodes = (now["env_steps"] - before["env_steps"]) / now["episode_len_mean"]
        partly += episodes != pytest.approx(round(episodes))
        assert now["env_steps"] - before["env_steps"] >= 200
    assert partly <= 1, "only of the iteration in which the node died may figures leave out what its samplers had seen"


def _counted(file: Path, *where: str) -> int:
    """Rewards in a standardizer's state."""
    state = json.loads(file.read_text())
    for key in where:
        state = state[key]
    return sum(one["count"] for one in state["keys"].values())
