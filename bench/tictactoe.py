"""Tic-tac-toe by self-play: the trained policy against a player that moves at random."""

from collections import Counter
from pathlib import Path

from bench.outcome import Claim, Outcome
from bench.rows import Options
from bench.runs import ROOT, told, train

GAMES = 200
"""Half of them on each side."""
SEED = 20_000
"""Of the games: not the seed of any training."""
PLAYERS = ("player_1", "player_2")


def tictactoe(options: Options) -> Outcome:
    """Train, then play."""
    count = options.seeds or 1
    runs = [
        train(
            ROOT / "experiments" / "tictactoe.yaml", (f"seed={s}", *options.overrides), options.out, quick=options.quick
        )
        for s in range(count)
    ]
    games = 8 if options.quick else GAMES
    ends = [{side: play_random(r.directory, side, games // 2) for side in PLAYERS} for r in runs]
    lost = sum(by_side[side]["lost"] for by_side in ends for side in PLAYERS)
    claims = (
        Claim(
            what=f"games lost to a random player of {games * count}",
            unit="games",
            measured=float(lost),
            target=0.0,
            at_least=False,
        ),
    )
    return Outcome(claims=claims, figures={"games": [_plain(e) for e in ends], "runs": [told(r) for r in runs]})


def play_random(directory: Path, side: str, games: int) -> Counter[str]:
    """How a run's policy fares, always its likeliest move, on that side against a random player."""
    from bench.trained import seats_of
    from policies.playing import Playable, RandomPolicy
    from trainers.play import play
    from trainers.rllib.algorithm import make_adapter

    build, seats = seats_of(directory)
    table: dict[str, Playable] = {**dict.fromkeys(PLAYERS, RandomPolicy()), side: seats[side]}
    ends: Counter[str] = Counter(won=0, drawn=0, lost=0)
    for game in play(lambda: make_adapter(build, "eval"), table, range(games), seed=SEED, greedy=True):
        paid = game.returns[side]
        ends["won" if paid > 0 else "lost" if paid < 0 else "drawn"] += 1
    return ends


def _plain(by_side: dict[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {side: dict(ends) for side, ends in by_side.items()}
