"""Decisions to be labelled by people: what an agent saw, what it did, and what followed it was paid."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from rewards.audit.figures import Run, measured_players, runs
from rewards.audit.games import GameMove
from rewards.audit.material import Material
from rewards.audit.playing import Move
from rewards.audit.ranges import shared
from runtime.records import ToolCall
from runtime.seams import digest

STRATA = 10
"""Groups of equally many decisions, from the least to the best paid, that a sample is drawn from evenly."""
LONGEST = 4_000
"""Characters of what an agent saw that a sheet shows: the first and the last half of them."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One decision."""

    id: str
    """Names it in a sheet; another case, player or text has another name."""
    agent: str
    saw: str
    did: str
    pay: float
    """What the agent is paid for it and for all that follows, in the terms' unit."""
    where: str


def decisions(material: Material) -> list[Judged]:
    """Every decision in play by chance, by the best there is, and by asking everything."""
    to_all = shared(material)
    found: dict[str, Judged] = {}
    for player in measured_players(material):
        for run in runs(material, player):
            if math.isfinite(run.pay):
                found |= {d.id: d for d in _of_run(run, to_all)}
    return list(found.values())


def _of_run(run: Run, to_all: set[str]) -> Iterable[Judged]:
    for move in run.played.moves:
        saw = _text(move)
        did = _call(move)
        name = f"d-{digest('decision', run.player, run.case, move.agent, move.step, saw, did):016x}"
        paid = (p for pays in run.pays.values() for p in pays if p.step >= move.step)
        pay = math.fsum(p.value or 0.0 for p in paid if p.agent == move.agent or p.term in to_all)
        where = f"step {move.step} of {run.case}, played by {run.player}"
        yield Judged(name, move.agent, _shortened(saw), did, pay, where)


def _text(move: Move | GameMove) -> str:
    if isinstance(move, Move):
        return move.seen.text
    mask = "" if move.seen.mask is None else f" may {[i for i, ok in enumerate(move.seen.mask) if ok]}"
    return f"{move.seen.array.round(4).tolist()}{mask}"


def _call(move: Move | GameMove) -> str:
    action = move.action
    if isinstance(move, Move) and isinstance(action, int):
        action = move.seen.candidates[action]
    if isinstance(action, ToolCall):
        return f"{action.tool}({', '.join(f'{k}={v!r}' for k, v in action.args.items())})"
    return str(action)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST // 2]}\n[… {len(text) - LONGEST} characters left out …]\n{text[-LONGEST // 2 :]}"


def sample(found: Sequence[Judged], count: int, seed: int) -> list[Judged]:
    """So many decisions, evenly from all strata of pay, in an order that says nothing of it."""
    chance = Random(digest("sheet", seed))
    pool = list(found)
    chance.shuffle(pool)
    pool.sort(key=lambda d: d.pay)
    size = max(1, math.ceil(len(pool) / STRATA))
    strata = [pool[i : i + size] for i in range(0, len(pool), size)]
    chosen: list[Judged] = []
    for stratum in strata:
        chance.shuffle(stratum)
    while len(chosen) < min(count, len(pool)):
        chosen += [s.pop() for s in strata if s]
    chosen = chosen[:count]
    chance.shuffle(chosen)
    return chosen
