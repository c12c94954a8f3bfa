"""``python -m bench.gpu``: a short training on the GPU, in fp32 and in bf16, beside the same one on the CPU.

One prepared script for a machine with a GPU: prints JSON, ends with 0 when the curves agree (or there is no GPU), with
1 when they do not. Sampling is on the CPU throughout; the update is what moves to the GPU.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.outcome import machine

FILE = Path(__file__).parents[1] / "experiments" / "supply_chain.yaml"
ITERATIONS = 3
EPISODES = 400
"""Random episodes that features and reward statistics are taken from."""
SMALL, LARGE = "[64, 64]", "[1024, 1024]"
"""Hidden layers: those of the experiment, and some that are worth a GPU."""
QUICK = ("ppo.train_batch_size=200", "ppo.minibatch_size=64", "ppo.num_epochs=1", "resources.envs_per_runner=8")
"""Tiny sizes, for a look at whether it works."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """Where and in what precision the update is computed."""

    gpus: int
    autocast: str
    """``off`` or ``bf16``."""

    def overrides(self, hidden: str) -> tuple[str, ...]:
        """The experiment's keys."""
        agents = ("triage", "investigator", "resolver")
        sizes = tuple(f"policies.{a}.hidden={hidden}" for a in agents)
        return (f"resources.gpus={self.gpus}", f"resources.autocast={self.autocast}", *sizes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """What each iteration gave."""

    returns: tuple[float, ...]
    """Mean return of an iteration's episodes, US dollars."""
    policy_losses: tuple[float, ...]
    """Mean over the policies, dimensionless."""
    value_losses: tuple[float, ...]
    """Mean over the policies, squared standardized rewards."""
    sample_s: tuple[float, ...]
    learn_s: tuple[float, ...]
    steps_per_s: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tolerance:
    """How far a curve may be from the CPU's. The first iteration samples with equal weights: its return is equal."""

    value_loss: float
    """Relative, in every iteration."""
    policy_loss: float
    """Absolute, in every iteration; it is near 0."""
    later_return: float
    """US dollars, after the first iteration: decisions near a tie fall the other way."""


CPU, GPU, GPU_BF16, CPU_BF16 = (
    Way(gpus=0, autocast="off"),
    Way(gpus=1, autocast="off"),
    Way(gpus=1, autocast="bf16"),
    Way(gpus=0, autocast="bf16"),
)
TOLERANCES: Mapping[Way, Tolerance] = {
    GPU: Tolerance(value_loss=0.02, policy_loss=0.002, later_return=3.0),
    GPU_BF16: Tolerance(value_loss=0.1, policy_loss=0.01, later_return=6.0),
    CPU_BF16: Tolerance(value_loss=0.1, policy_loss=0.01, later_return=6.0),
}
"""fp32 sums in another order; bf16 has 8 bits (0.4%). Returns of 1,500 cases have a standard error of 1.5 USD."""


def name(way: Way) -> str:
    """``cpu``, ``gpu``, ``cpu bf16`` or ``gpu bf16``."""
    return ("gpu" if way.gpus else "cpu") + (" bf16" if way.autocast == "bf16" else "")


def train(way: Way, hidden: str, overrides: Sequence[str], episodes: int = EPISODES) -> Curve:
    """Three iterations from the same seed."""
    import torch

    from bench.algorithms import Stopwatch
    from bench.settings import contest
    from trainers.rllib.engine import Engine

    torch.set_num_threads(1)
    given = contest(FILE, (*way.overrides(hidden), *overrides), episodes)
    torch.manual_seed(given.build.experiment.seed)
    engine = Engine(given.build, given.seats, given.standardizer)
    sampling = Stopwatch(engine.algorithm.env_runner, "sample")
    learning = Stopwatch(engine.algorithm.learner_group, "update")
    rows: list[tuple[float, ...]] = []
    for _ in range(ITERATIONS):
        began = time.perf_counter()
        found = engine.iterate()
        whole = time.perf_counter() - began
        losses = [_mean(found.learners, key) for key in ("policy_loss", "vf_loss")]
        rows.append((found.episodes["return"], *losses, sampling.read(), learning.read(), found.env_steps / whole))
    engine.close()
    columns = list(zip(*rows, strict=True))
    return Curve(
        returns=columns[0],
        policy_losses=columns[1],
        value_losses=columns[2],
        sample_s=columns[3],
        learn_s=columns[4],
        steps_per_s=columns[5],
    )


def _mean(learners: Mapping[str, Mapping[str, Any]], key: str) -> float:
    return sum(float(v[key]) for v in learners.values()) / len(learners)


def differences(found: Curve, cpu: Curve, allowed: Tolerance) -> list[str]:
    """Everything in which a curve is not the CPU's."""
    wrong: list[str] = []
    if found.returns[0] != cpu.returns[0]:
        wrong.append(f"first return {found.returns[0]} is not {cpu.returns[0]}, though the weights are the same")
    for i, (mine, theirs) in enumerate(zip(found.returns[1:], cpu.returns[1:], strict=True), 2):
        if abs(mine - theirs) > allowed.later_return:
            wrong.append(f"return of iteration {i}: {mine:.3f}, on the CPU {theirs:.3f}")
    for i, (mine, theirs) in enumerate(zip(found.value_losses, cpu.value_losses, strict=True), 1):
        if abs(mine - theirs) > allowed.value_loss * abs(theirs):
            wrong.append(f"value loss of iteration {i}: {mine:.5f}, on the CPU {theirs:.5f}")
    for i, (mine, theirs) in enumerate(zip(found.policy_losses, cpu.policy_losses, strict=True), 1):
        if abs(mine - theirs) > allowed.policy_loss:
            wrong.append(f"policy loss of iteration {i}: {mine:.5f}, on the CPU {theirs:.5f}")
    return wrong


def device() -> dict[str, Any] | None:
    """The GPU; None where there is none."""
    import torch

    if not torch.cuda.is_available():
        return None
    about = torch.cuda.get_device_properties(0)
    return {
        "name": about.name,
        "memory_gb": round(about.total_memory / 1e9, 1),
        "cuda": torch.version.cuda,
        "bf16": torch.cuda.is_bf16_supported(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Compare, print JSON, and return 0 where the curves agree."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description="The same training on CPU and GPU.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    asked = parser.parse_args(argv)
    gpu = device()
    if gpu is None:
        print("no GPU here")
        return 0
    print(f"device: {gpu}", file=sys.stderr)
    told, wrong = compare((GPU, GPU_BF16), QUICK if asked.quick else ())
    print(json.dumps({"device": gpu, "machine": machine(), "runs": told, "differences": wrong}, indent=1))
    return 1 if any(wrong.values()) else 0


def compare(ways: Sequence[Way], overrides: Sequence[str]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Every way beside the CPU, with small and with large networks; the curves are compared with the small ones.

    Large networks are there for the time they take: a rounding error is another one with other sizes.
    """
    from trainers.ray_cluster import ray_running

    told: dict[str, Any] = {}
    wrong: dict[str, list[str]] = {}
    with ray_running(_resources()):
        for hidden in (SMALL, LARGE):
            cpu = train(CPU, hidden, overrides)
            told[f"{name(CPU)} {hidden}"] = asdict(cpu)
            for way in ways:
                found = train(way, hidden, overrides)
                told[f"{name(way)} {hidden}"] = asdict(found)
                if hidden == SMALL:
                    wrong[name(way)] = differences(found, cpu, TOLERANCES[way])
    return told, wrong


def _resources() -> Any:
    from assembly.training import Resources

    return Resources()


if __name__ == "__main__":
    sys.exit(main())
