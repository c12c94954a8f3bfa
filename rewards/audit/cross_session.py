"""Runs side by side share nothing: the same run alone, alone again, among others, and afterwards."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from rewards.audit.findings import Evidence, Finding, Where, error
from rewards.audit.games import GameSitting
from rewards.audit.material import Material
from rewards.audit.playing import Sitting
from runtime.records import EpisodeEnded, Rewarded, Sent, ToolAnswered

_REMEDY = (
    "keep all state in the world that each run makes afresh: no module, class or closure state; chance from the seed"
)
COMPANY = 3
"""Runs that are played beside the one that is watched."""


class _Sitting(Protocol):
    @property
    def over(self) -> bool: ...
    def step(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Watched:
    """A run, and its trace: one line for each thing that was seen, answered or paid."""

    name: str
    player: str
    sit: Callable[[int], tuple[_Sitting, Callable[[], list[str]]]]
    """``sit(k)``: the run itself (0), or its k-th companion."""


def cross_session(material: Material) -> Iterator[Finding]:
    """Every player's run on a few cases, in four surroundings."""
    watched = _of_team(material) if material.has("team") else _of_game(material)
    for each in watched:
        found = _compared(each)
        if found is not None:
            yield found
            return


def _compared(watched: _Watched) -> Finding | None:
    alone = _alone(watched)
    surroundings = {
        "played once more": lambda: _alone(watched),
        "played step by step with others": lambda: _among_others(watched),
        "played after others": lambda: _alone(watched),
    }
    for what, play in surroundings.items():
        again = play()
        if again != alone:
            return _told(watched, what, alone, again)
    return None


def _alone(watched: _Watched) -> list[str]:
    sitting, trace = watched.sit(0)
    while not sitting.over:
        sitting.step()
    return trace()


def _among_others(watched: _Watched) -> list[str]:
    sittings = [watched.sit(k) for k in range(COMPANY + 1)]
    while any(not s.over for s, _ in sittings):
        for sitting, _ in reversed(sittings):
            if not sitting.over:
                sitting.step()
    return sittings[0][1]()


def _told(watched: _Watched, what: str, alone: list[str], again: list[str]) -> Finding:
    pairs = [(i, a, b) for i, (a, b) in enumerate(zip(alone, again, strict=False)) if a != b]
    at, one, two = pairs[0] if pairs else (min(len(alone), len(again)), "(the end)", "(it goes on)")
    start = max(0, next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0) - 60)
    return error(
        f"the same run is another when it is {what}: something is shared between runs, or left to unseeded chance",
        _REMEDY,
        Where(episode=watched.name, player=watched.player),
        Evidence(
            numbers={"line": at}, saw=f"alone: {one[start : start + 240]}", used=f"{what}: {two[start : start + 240]}"
        ),
    )


def _of_team(material: Material) -> Iterator[_Watched]:
    count = material.counts.get("train")
    for player in dict.fromkeys(n for n in ("random", "ask_everything", material.best) if n):
        for index in range(2):

            def sit(k: int, player: str = player, index: int = index) -> tuple[_Sitting, Callable[[], list[str]]]:
                place = index + 7 * k
                scenario = material.scenario(place if count is None else place % count)
                sitting = material.sit(player, scenario, paid=bool(material.mix.terms))
                return sitting, lambda: trace_of(sitting)

            yield _Watched(material.scenario(index).id, player, sit)


def trace_of(sitting: Sitting) -> list[str]:
    """All that was seen, answered, sent and paid in a run, as text."""
    episode = sitting.episode()
    seen = [f"{m.agent} sees {m.seen.text} may {m.seen.mask}" for m in episode.moves]
    kinds = (ToolAnswered, Sent, Rewarded, EpisodeEnded)
    return seen + [str(r.model_dump(exclude={"correlation_id", "at"})) for r in episode.records if isinstance(r, kinds)]


def _of_game(material: Material) -> Iterator[_Watched]:
    for seed in range(2):

        def sit(k: int, seed: int = seed) -> tuple[_Sitting, Callable[[], list[str]]]:
            sitting = GameSitting(material.opens_game(seed + 7 * k), "random", seed + 7 * k)
            return _Short(sitting), lambda: _game_trace(sitting)

        yield _Watched(f"seed {seed}", "random", sit)


class _Short:
    """A game watched for so many steps at most."""

    LIMIT = 100

    def __init__(self, sitting: GameSitting) -> None:
        self._sitting, self._left = sitting, self.LIMIT

    @property
    def over(self) -> bool:
        return self._left <= 0 or self._sitting.over

    def step(self) -> None:
        self._sitting.step()
        self._left -= 1


def _game_trace(sitting: GameSitting) -> list[str]:
    game = sitting.game()
    rows: list[Any] = [(m.agent, m.seen.array.round(6).tolist(), m.seen.mask) for m in game.moves]
    return [str(r) for r in rows] + [str(sorted(paid.items())) for paid in game.rewards]
