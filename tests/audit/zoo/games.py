"""PettingZoo environments, honest and not: arrays, no text."""

from collections.abc import Callable

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from assembly.stage import games
from rewards.audit.material import Effort, Material
from rewards.mix import Mix

EFFORT = Effort(episodes=40, examples=8, openings=150)
ROUNDS = 8
PLAYED = [0]
"""What a faulty environment keeps from run to run."""

Pays = Callable[["Guess", str, int], float]
Sees = Callable[["Guess", np.ndarray], np.ndarray]


class Guess(ParallelEnv):
    """Both guess a hidden number again and again; what they see says after each round whether it was too low."""

    metadata = {"name": "guess"}  # noqa: RUF012

    def __init__(self, pays: Pays, sees: Sees, tells: bool = True) -> None:
        self.possible_agents, self.pays, self.sees, self.tells = ["a", "b"], pays, sees, tells
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> spaces.Box:
        return spaces.Box(-1e6, 1e6, (3,), np.float32)

    def action_space(self, agent: str) -> spaces.Discrete:
        return spaces.Discrete(4)

    def _seen(self) -> dict[str, np.ndarray]:
        base = np.array([self.round, self.hint, self.chance.normal()])
        return {a: self.sees(self, base.copy()).astype(np.float32) for a in self.possible_agents}

    def reset(self, seed: int | None = None, options: dict | None = None):
        self.chance, self.agents = np.random.default_rng(seed), list(self.possible_agents)
        self.number, self.luck = int(self.chance.integers(4)), self.chance.random()
        self.round, self.hint, self.hits, self.still, self.last = 0, 0.0, 0, dict.fromkeys(self.agents, 0), {}
        return self._seen(), {a: {"truth": {"number": self.number}} for a in self.agents}

    def step(self, actions: dict[str, int]):
        PLAYED[0] += 1
        self.round += 1
        self.hits += sum(x == self.number for x in actions.values())
        self.still = {a: self.still[a] + 1 if self.last.get(a, x) == x else 0 for a, x in actions.items()}
        self.last = actions
        self.hint = float(np.sign(self.number - actions["a"]))
        paid = {a: self.pays(self, a, x) for a, x in actions.items()}
        over, agents = self.round >= ROUNDS, self.agents
        info = {"success": self.hits >= ROUNDS // 2} if over and self.tells else {}
        self.agents = [] if over else self.agents
        return (
            self._seen(),
            paid,
            dict.fromkeys(agents, over),
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, info),
        )


def hit(env: Guess, agent: str, action: int) -> float:
    return float(action == env.number)


def sees_all(env: Guess, base: np.ndarray) -> np.ndarray:
    return base


def game(pays: Pays = hit, sees: Sees = sees_all, *, tells: bool = True) -> Material:
    opens = games(lambda: Guess(pays, sees, tells))
    return Material(name="guess", agents=("a", "b"), mix=Mix([]), open_game=opens, effort=EFFORT)


def first_round_spoils(env: Guess, base: np.ndarray) -> np.ndarray:
    base[2] += 3.0 * env.number
    return base


def last_digit(env: Guess, base: np.ndarray) -> np.ndarray:
    base[2] = round(float(base[2]), 2) + 0.001 * env.number
    return base


def rounds_of_all(env: Guess, base: np.ndarray) -> np.ndarray:
    base[0] = PLAYED[0]
    return base


FAULTY: dict[str, dict[str, Callable[[], Material]]] = {
    "truth-predictable-at-start": {
        "the number in the noise": lambda: game(sees=first_round_spoils),
        "the number behind the point": lambda: game(sees=last_digit),
    },
    "cross-session": {
        "a clock for all": lambda: game(sees=rounds_of_all),
        "pay that grows with age": lambda: game(lambda e, a, x: hit(e, a, x) + 0.001 * PLAYED[0]),
    },
    "constant": {
        "one for everything": lambda: game(lambda e, a, x: 1.0),
        "a share for being there": lambda: game(lambda e, a, x: 0.5 if e.round < ROUNDS else 1.5, tells=False),
    },
    "nearly-constant": {
        "ten nearly always": lambda: game(lambda e, a, x: 10.0 * (e.round == ROUNDS and e.luck > 0.05)),
        "one for most numbers": lambda: game(lambda e, a, x: float(e.luck > 0.04), tells=False),
    },
    "failure-as-zero": {
        "not a number": lambda: game(lambda e, a, x: float("nan") if e.hits == 3 else hit(e, a, x)),
        "infinite for a miss": lambda: game(lambda e, a, x: hit(e, a, x) or float("-inf")),
    },
    "out-of-range": {
        "a thousand for standing still": lambda: game(
            lambda e, a, x: 1000.0 if e.still[a] == ROUNDS else hit(e, a, x)
        ),
        "ever more for standing still": lambda: game(lambda e, a, x: 4.0 ** e.still[a]),
    },
    "sign": {
        "misses are paid": lambda: game(lambda e, a, x: 1.0 - hit(e, a, x)),
        "minus the hits": lambda: game(lambda e, a, x: -hit(e, a, x)),
    },
    "scale": {
        "a large number that hardly moves": lambda: game(lambda e, a, x: 1e7 + hit(e, a, x)),
        "a huge number for most": lambda: game(lambda e, a, x: 1e6 + 1e-2 * e.chance.normal()),
    },
}  # fmt: skip

HONEST: dict[str, Callable[[], Material]] = {
    "hits": game,
    "hits, and nobody says what success is": lambda: game(tells=False),
    "zero sum": lambda: game(lambda e, a, x: (1 if a == "a" else -1) * (hit(e, a, x) - 0.5), tells=False),
    "minus one until it is over": lambda: game(lambda e, a, x: -1.0, tells=False),
    "paid at the end": lambda: game(lambda e, a, x: float(e.round == ROUNDS) * e.hits),
    "nothing so far": lambda: game(lambda e, a, x: 100.0 * (e.hits >= 2 * ROUNDS), tells=False),
    "distance": lambda: game(lambda e, a, x: -abs(x - e.number) - 0.01),
    "noise on top": lambda: game(lambda e, a, x: hit(e, a, x) + 0.3 * e.chance.normal()),
}
