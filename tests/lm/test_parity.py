"""The same scenario, seed and weights give the same decisions, in training and out of it."""

from pathlib import Path
from typing import Any

import pytest

from envs.session import Session
from envs.tally import Tally
from runtime.records import Decided
from tests.lm.shop import WARMUP, shop
from trainers.play import play
from trainers.rllib.algorithm import make_adapter


def decisions(records: Any) -> list[tuple[str, int, str]]:
    return [(r.agent, r.turn, r.call.model_dump_json()) for r in records if isinstance(r, Decided)]


@pytest.mark.parametrize("mode", [{}, {"mode": "generate", "call_tokens": "40"}], ids=["choose", "generate"])
def test_the_sampler_and_playing_decide_alike(tmp_path: Path, mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision for decision, exploring, in batches of other sizes: a written call, too."""
    warmup = WARMUP.replace("}", ", smoothing: 0.5}")
    made = shop(tmp_path, warm=True, warmup=warmup, **mode)
    sampled: dict[str, Any] = {}
    count = Tally.add

    def keep(tally: Tally, session: Session, *rest: Any, **more: Any) -> None:
        sampled[session.scenario.id] = decisions(session.records)
        count(tally, session, *rest, **more)

    monkeypatch.setattr(Tally, "add", keep)
    made.runner.sample(num_timesteps=60)
    monkeypatch.setattr(Tally, "add", count)
    states = made.learner.get_state(components="rl_module")["rl_module"]
    seats = {n: s.policy(s.actor(states[n])) for n, s in made.seats.items()}
    seed = made.build.experiment.seed
    found = {}
    for greedy in (False, True):
        episodes = play(
            lambda: make_adapter(made.build, "train"), seats, range(len(sampled)), seed=seed, greedy=greedy, width=3
        )
        found[greedy] = {p.records[0].scenario: decisions(p.records) for p in episodes}
    assert len(sampled) >= 15
    assert found[False] == sampled
    assert found[True] != sampled, "the comparison can fail"
