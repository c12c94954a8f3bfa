"""The same scenario, seed and weights give the same decisions, in training and out of it."""

from pathlib import Path
from typing import Any

import pytest

from assembly.build import Build
from assembly.loading import load
from envs.session import Session
from envs.tally import Tally
from policies.encoder import Actor
from policies.playing import EncoderPolicy
from runtime.records import Decided
from trainers.measure import featurizers, measure
from trainers.play import play
from trainers.rllib.algorithm import algorithm_config, make_adapter, seats

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "supply_chain.yaml"


def _decisions(records: Any) -> list[tuple[str, int, str]]:
    return [(r.agent, r.turn, r.call.model_dump_json()) for r in records if isinstance(r, Decided)]


def test_the_sampler_and_playing_decide_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision for decision, exploring: frozen policies played in other batches take what the batched sampler took."""
    build = Build(load(EXPERIMENT, ["resources.env_runners=0", "resources.envs_per_runner=16"]))
    sight = featurizers(build, measure(build, 100))
    seated = seats(build, sight)
    config = algorithm_config(build, seated, None)
    runner: Any = config.env_runner_cls(config=config)  # type: ignore[misc]
    sampled: dict[str, Any] = {}
    count = Tally.add

    def keep(tally: Tally, session: Session, team_return: float) -> None:
        sampled[session.scenario.id] = _decisions(session.records)
        count(tally, session, team_return)

    monkeypatch.setattr(Tally, "add", keep)
    runner.sample(num_timesteps=300)
    monkeypatch.setattr(Tally, "add", count)
    policies = {}
    for name, seat in seated.items():
        actor = Actor(seat.spec)
        actor.load_state_dict(runner.module[name].pi.state_dict())
        policies[name] = EncoderPolicy(actor, seat.featurize)
    players = {a: policies[build.policy_of[a]] for a in build.learners}
    played = _played(build, players, len(sampled), greedy=False)
    assert len(played) >= 30
    assert played == sampled
    assert _played(build, players, len(sampled), greedy=True) != sampled, "the comparison can fail"


def _played(build: Build, players: Any, count: int, *, greedy: bool) -> dict[str, Any]:
    seed = build.experiment.seed
    episodes = play(lambda: make_adapter(build, "train"), players, range(count), seed=seed, greedy=greedy, width=7)
    return {build.source("train")(p.episode).id: _decisions(p.records) for p in episodes}
