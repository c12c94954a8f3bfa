"""All rows by name."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.outcome import Outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How rows are to be run."""

    out: Path
    """Where run directories go."""
    quick: bool = False
    """Tiny sizes: shows that the row works, measures nothing."""
    seeds: int | None = None
    """How many seeds; None: as many as the row's target asks for."""
    minutes: float | None = None
    """Training time of each run; None: as the row's target asks for."""
    overrides: tuple[str, ...] = ()
    """``key=value`` for the row's experiment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Something that can be measured."""

    says: str
    use: str
    """``module:function`` that runs it: imported only then."""
    usual: bool = True
    """Whether it is run when no row is named."""

    def run(self, options: Options) -> Outcome:
        """Measure it."""
        module, _, name = self.use.partition(":")
        function: Callable[[Options], Any] = getattr(importlib.import_module(module), name)
        return function(options)


ROWS: dict[str, Row] = {
    "speed": Row(
        says="a PPO iteration on supply_chain beside plain RLlib's and a hand-written loop's",
        use="bench.speed:supply_chain",
    ),
    "speed_3_turns": Row(
        says="the same on an environment that costs nothing, episodes of 3 turns", use="bench.speed:three_turns"
    ),
    "speed_12_turns": Row(says="the same, episodes of 12 turns", use="bench.speed:twelve_turns"),
    "actors": Row(says="a call of an agent beside a bare Ray actor's, store off and on", use="bench.actors:calls"),
    "bus": Row(says="the event bus beside bare redis-py, and a hop at 1,000 events/s", use="bench.bus:bus"),
    "looking": Row(
        says="training and a live chain with everything shown, beside nothing shown", use="bench.looking:looking"
    ),
    "router": Row(says="a served turn through our router beside bare Ray Serve", use="bench.router:router"),
    "proxy": Row(says="a call through the recording proxy beside a direct one", use="bench.proxy:proxy"),
    "lm_scoring": Row(says="calls scored as one tree, beside re-encoding the prompt for each", use="bench.lm:scoring"),
    "lm_update": Row(says="a PPO update of tiny language models beside plain PyTorch's", use="bench.lm:update"),
    "two_step": Row(says="the two-step game: what independent PPO earns", use="bench.games_rows:two_step"),
    "cartpole": Row(says="two CartPoles with a policy each, 300,000 steps", use="bench.games_rows:cartpole"),
    "tictactoe": Row(says="self-play, then 200 games against a random player", use="bench.tictactoe:tictactoe"),
    "supply_chain": Row(says="experiments/supply_chain.yaml from scratch, 5 seeds", use="bench.supply_chain:shipped"),
    "worlds": Row(says="the same on worlds with other numbers and other names", use="bench.supply_chain:drawn"),
    "standardization": Row(
        says="supply_chain with and without standardized rewards, 80 iterations, 5 seeds each",
        use="bench.standardization:standardization",
        usual=False,
    ),
    "waterworld": Row(
        says="waterworld_v4 with a shared policy, 800,000 steps", use="bench.games_rows:waterworld", usual=False
    ),
}
"""In the order in which they are run."""
