"""Play as numbers: what was paid in each run, by term; for teams and for games alike."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rewards.audit.correlations import rank_biserial
from rewards.audit.games import GAME_PLAYERS, Game
from rewards.audit.judging import Pay
from rewards.audit.material import Material
from rewards.audit.playing import Episode
from rewards.mix import Weighted
from runtime.types import TermKind

MEASURED = ("random", "ask_everything")
"""Players that ranges are measured on, beside the best one there is."""
GOES, STRAY = 0.5, 0.3
"""Rank correlations with success above which an outcome is about it, and below which it is about something else."""
BOTH = 3
"""Runs that must succeed, and fail, before success counts as varied."""
STEPS = 5_000
"""Steps of a game that each player plays at most, beyond a few games: some games take thousands of them."""
MANY = 100
"""Further cases that chance plays."""
FEWEST = 20
"""Episodes of every player, at least."""


@dataclass(frozen=True, slots=True)
class Payer:
    """Something that pays: a term of the mix with a weight, or a game, which pays each agent by a rule of its own."""

    name: str
    kind: TermKind
    weighted: Weighted | None = None
    """The term; None for a game."""


@dataclass(frozen=True)
class Run:
    """One run as numbers."""

    player: str
    case: str
    pays: Mapping[str, Sequence[Pay]]
    """By payer, in order."""
    success: bool | None
    """None where nothing says so."""
    steps: int
    played: Episode | Game = field(repr=False)

    @cached_property
    def totals(self) -> dict[str, float]:
        """Each payer's sum, weight included; NaN when some of it is missing."""
        return {n: math.fsum(math.nan if p.value is None else p.value for p in pays) for n, pays in self.pays.items()}

    def total(self, payer: str) -> float:
        """One payer's sum; 0 where it had nothing to pay."""
        return self.totals.get(payer, 0.0)

    @property
    def pay(self) -> float:
        """The sum of all payers."""
        return math.fsum(self.totals.values())


def payers(material: Material, kinds: Iterable[TermKind] = ("outcome", "shaping", "cost")) -> list[Payer]:
    """What pays, of some kinds. A game's pay is an outcome."""
    wanted = set(kinds)
    if material.has("game"):
        return [Payer(_of_game(a), "outcome") for a in material.agents] if "outcome" in wanted else []
    return [Payer(w.term.name, w.term.kind, w) for w in material.mix.terms if w.weight and w.term.kind in wanted]


def _of_game(agent: str) -> str:
    return f"reward of {agent}"


def measured_players(material: Material) -> tuple[str, ...]:
    """Who shows what pay to expect: chance, the best there is, and asking everything; in a game, chance."""
    if material.has("game"):
        return GAME_PLAYERS[:1]
    return tuple(dict.fromkeys(n for n in (*MEASURED[:1], material.best, *MEASURED[1:]) if n))


def all_players(material: Material) -> tuple[str, ...]:
    """All ways to play, those that are measured first."""
    others = GAME_PLAYERS if material.has("game") else (*material.players, *([material.gold] if material.gold else []))
    return tuple(dict.fromkeys((*measured_players(material), *others)))


def runs(material: Material, player: str, count: int = 0, start: int = 0) -> list[Run]:
    """A player's runs on the first cases (from ``start`` on); by default as many as the audit's effort says.

    Those whose figures nobody measures play a third of that.
    """
    some = material.effort.episodes
    wanted = count or (some if player in measured_players(material) else max(FEWEST, some // 3))
    if material.has("game"):
        (first,) = material.games(player, 1)
        affordable = max(FEWEST // 2, STEPS // max(1, first.steps))
        return [_game_run(g) for g in material.games(player, min(wanted, affordable), start)]
    return [_run(material, e) for e in material.episodes(player, wanted, start=start)]


def all_runs(material: Material) -> list[Run]:
    """Everybody's runs, on the same cases."""
    return [r for player in all_players(material) for r in runs(material, player)]


def many_runs(material: Material) -> list[Run]:
    """Everybody's runs, and chance's on further cases: enough for a condition that one case in twenty breaks."""
    start = max(MANY, material.effort.episodes)
    return [*all_runs(material), *runs(material, "random", MANY, start)]


def _run(material: Material, episode: Episode) -> Run:
    pays: dict[str, list[Pay]] = {w.term.name: [] for w in material.mix.terms}
    for pay in material.pay(episode):
        pays[pay.term].append(pay)
    return Run(episode.player, episode.name, pays, episode.success, episode.steps, episode)


def _game_run(game: Game) -> Run:
    pays: dict[str, list[Pay]] = {}
    for step, paid in enumerate(game.rewards):
        for agent, value in paid.items():
            finite = value if math.isfinite(value) else None
            pay = Pay(_of_game(agent), agent, step, finite, "" if finite is not None else f"paid {value}")
            pays.setdefault(pay.term, []).append(pay)
    return Run(game.player, game.name, pays, game.success, game.steps, game)


def finite_runs(found: Iterable[Run], payer: str) -> list[Run]:
    """Runs in which the payer has no missing pay."""
    return [r for r in found if math.isfinite(r.total(payer))]


# -- beside success


def varied_success(usable: Sequence[Run]) -> bool:
    """Whether some runs succeeded and some failed."""
    return min(sum(r.success is True for r in usable), sum(r.success is False for r in usable)) >= BOTH


def with_success(payer: Payer, usable: Sequence[Run]) -> tuple[float, float]:
    """Rank-biserial correlation of a payer's totals with success, and its p-value; both kinds of runs are needed."""
    return rank_biserial(*([r.total(payer.name) for r in usable if bool(r.success) is side] for side in (True, False)))


def hints(material: Material, found: Sequence[Run]) -> list[Payer]:
    """What must stay small beside the outcome: shaping terms, and outcomes that do not go with success as others do."""
    shaping = payers(material, ("shaping",))
    outcomes = [p for p in payers(material, ("outcome",)) if p.weighted is not None]
    usable = [r for r in found if math.isfinite(r.pay) and r.success is not None]
    if len(outcomes) < 2 or not varied_success(usable):
        return shaping
    goes = {p.name: with_success(p, usable)[0] for p in outcomes}
    astray = [p for p in outcomes if abs(goes[p.name]) < STRAY] if max(goes.values()) > GOES else []
    return [*shaping, *astray]
