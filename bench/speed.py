"""A PPO iteration of ours beside plain RLlib's and a hand-written loop's: alternately, in one process."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from bench.outcome import Claim, Outcome
from bench.rows import Options
from bench.runs import ROOT

ROUNDS = 7
"""Timed iterations of each contestant; one more before them warms it up."""
FASTER, NEAR = 4.0, 1.3
"""At least so many times faster than plain RLlib; at most so many times the hand-written loop's time."""
EPISODES = 400
"""Random episodes that features and reward statistics are taken from."""
PLAIN_ENVS = 8
"""Environments side by side in plain RLlib; more are tried beside it."""
SMALL = ("ppo.train_batch_size=768", "ppo.minibatch_size=128", "ppo.num_epochs=1")
"""Tiny sizes; RLlib refuses a batch that is no multiple of environments times fragment, within a tenth."""
SUPPLY_CHAIN = ("ppo.train_batch_size=4000",)
"""RLlib's own default: its work on an iteration grows with the square of the batch, so a larger one would favour us."""


def supply_chain(options: Options) -> Outcome:
    """On the supply chain."""
    return race(ROOT / "experiments" / "supply_chain.yaml", SUPPLY_CHAIN, options, envs=32)


def three_turns(options: Options) -> Outcome:
    """On the relay, one turn each."""
    return race(ROOT / "bench" / "experiments" / "relay.yaml", ("team.args.rounds=1",), options, envs=8)


def twelve_turns(options: Options) -> Outcome:
    """On the relay, four turns each."""
    return race(ROOT / "bench" / "experiments" / "relay.yaml", ("team.args.rounds=4",), options, envs=8)


def race(file: Path, overrides: tuple[str, ...], options: Options, envs: int) -> Outcome:
    """All contestants on the experiment, ``envs`` environments side by side (plain RLlib: 8, and as many)."""
    import torch

    from bench.settings import contest

    torch.set_num_threads(1)
    given = contest(file, (*overrides, *(SMALL if options.quick else ()), *options.overrides), _episodes(options))
    laps = _laps(given, envs, 1 if options.quick else ROUNDS)
    figures = {name: _figures(found) for name, found in laps.items()}
    cost = {name: f["s_per_1000_env_steps"] for name, f in figures.items()}
    return Outcome(claims=_claims(cost), figures={"rounds": ROUNDS, **figures})


def _episodes(options: Options) -> int:
    return 20 if options.quick else EPISODES


def _laps(given: Any, envs: int, rounds: int) -> dict[str, list[Any]]:
    from bench.algorithms import Ours, Plain, PlainInPieces
    from bench.handwritten import Handwritten
    from bench.settings import Enter
    from trainers.ray_cluster import ray_running

    entries: dict[str, tuple[Enter, int]] = {
        "ours": (Ours, envs),
        "plain": (Plain, PLAIN_ENVS),
        "plain_in_pieces": (PlainInPieces, PLAIN_ENVS),
        "handwritten": (Handwritten, envs),
    }
    if envs != PLAIN_ENVS:
        entries["plain_in_pieces_wide"] = (PlainInPieces, envs)
    laps: dict[str, list[Any]] = {name: [] for name in entries}
    with ray_running(given.build.experiment.resources):
        runners = {name: enter(given, width) for name, (enter, width) in entries.items()}
        for turn in range(rounds + 1):
            for name, runner in runners.items():
                lap = runner.lap()
                if turn:
                    laps[name].append(lap)
        for runner in runners.values():
            runner.close()
    return laps


def _figures(laps: list[Any]) -> dict[str, Any]:
    return {
        "env_steps": round(median(lap.env_steps for lap in laps)),
        "s_per_1000_env_steps": median(lap.per_thousand for lap in laps),
        "iteration_s": median(lap.total_s for lap in laps),
        "sample_s": median(lap.sample_s for lap in laps),
        "learn_s": median(lap.learn_s for lap in laps),
        "fastest_s": min(lap.total_s for lap in laps),
        "slowest_s": max(lap.total_s for lap in laps),
    }


def _claims(cost: Mapping[str, float]) -> tuple[Claim, ...]:
    ours, written = cost["ours"], cost["handwritten"]
    tuned = min(c for n, c in cost.items() if n.startswith("plain_"))
    rates = [
        Claim(what=f"{n.replace('_', ' ')}, whole iterations", unit="env steps/s", measured=1000 / c)
        for n, c in cost.items()
    ]
    return (
        Claim(what="times faster than plain RLlib", unit="×", measured=cost["plain"] / ours, target=FASTER),
        Claim(what="of the hand-written loop's time", unit="×", measured=ours / written, target=NEAR, at_least=False),
        Claim(what="times faster than the fastest tuned plain RLlib", unit="×", measured=tuned / ours),
        *rates,
    )
