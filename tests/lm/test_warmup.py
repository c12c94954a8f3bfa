"""The warm start: a policy calls what it was shown, and PPO begins there."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from assembly.loading import load
from assembly.problems import Refused
from envs.session import Session
from policies.lm.loading import load_model
from runtime.records import Record
from tests.lm.shop import FILE, LORA, WARMUP, built, shop, sight
from trainers.demonstrations import Shown, demonstrations, returns_to_go
from trainers.play import play
from trainers.rllib.algorithm import make_adapter, seats
from trainers.warmup import NothingToImitate, critic_loss, cross_entropy, warm_up


@pytest.mark.parametrize("keys", [{}, {"lora": LORA}], ids=["full", "lora"])
def test_after_a_warm_start_the_team_plays_as_the_expert_does(tmp_path: Path, keys: Any) -> None:
    """On cases that it was not shown; learner and sampler both begin there."""
    warmup = WARMUP.replace("epochs: 4", "epochs: 8")
    made = shop(tmp_path, warm=True, warmup=warmup, **keys)
    assert made.runner.policy_hashes() == made.learner.policy_hashes()
    states = made.learner.get_state(components="rl_module")["rl_module"]
    policies = {n: s.policy(s.actor(states[n])) for n, s in made.seats.items()}
    played = list(play(lambda: make_adapter(made.build, "eval"), policies, range(40), seed=0, greedy=True))
    assert sum(p.success for p in played) >= 38
    report = json.loads((tmp_path / "models" / "warmup.json").read_text())
    assert report["clerk"]["decisions"] == 60


def test_a_warm_start_happens_once(tmp_path: Path) -> None:
    """What it left is what every later start begins with."""
    one = shop(tmp_path, warm=True, warmup=WARMUP)
    assert warm_up(one.build, one.seats) == {}
    other = shop(tmp_path, warm=True, warmup=WARMUP)
    assert one.learner.policy_hashes() == other.learner.policy_hashes()


def test_policies_that_start_from_one_made_model_learn_on_it_together(tmp_path: Path) -> None:
    """And those whose warm starts differ start from models of their own."""
    build = built(warmup=WARMUP)
    both = seats(build, sight(build, tmp_path))
    assert both["buyer"].spec.path == both["clerk"].spec.path
    before = load_model(both["buyer"].spec.path, "float32").state_dict()
    warm_up(build, both)
    after = load_model(both["buyer"].spec.path, "float32").state_dict()
    assert any(not before[k].equal(after[k]) for k in before)
    apart = built("policies.clerk.warmup.episodes=61", warmup=WARMUP)
    told = seats(apart, sight(apart, tmp_path))
    assert told["buyer"].spec.path != told["clerk"].spec.path


def test_recorded_episodes_can_be_imitated(tmp_path: Path) -> None:
    """A JSONL file with a record a line; what was no legal candidate is left out."""
    build = built(warmup=WARMUP)
    shown = demonstrations(build, seats(build, sight(build, tmp_path)), build.learned["buyer"].warmup).shown
    records: list[Record] = []
    assert build.team is not None
    for episode in range(5):
        session = Session(build.team, build.source("train")(episode), correlation_id=f"case {episode}")
        while session.to_act:
            agent = session.to_act[0]
            session.act(agent, "not json" if episode == 4 else session.observe(agent).mask.index(True))
            if episode == 4:
                session.cut()
        records += session.records
    file = tmp_path / "traces.jsonl"
    file.write_text("\n".join(r.model_dump_json() for r in records))
    told = built(warmup=f"{{from: '{file}', episodes: 5}}")
    traced = demonstrations(told, seats(told, sight(told, tmp_path)), told.learned["buyer"].warmup).shown
    assert {n: len(s) for n, s in traced.items()} == {"buyer": 8, "clerk": 4}
    assert traced["clerk"].calls.tolist() == [0] * 4
    assert len(shown["clerk"]) == 60


def test_a_file_that_shows_nothing_is_refused(tmp_path: Path) -> None:
    """By name."""
    (tmp_path / "empty.jsonl").write_text("")
    build = built(warmup=f"{{from: '{tmp_path / 'empty.jsonl'}'}}")
    with pytest.raises(NothingToImitate, match=r"empty\.jsonl shows no decision for buyer, clerk"):
        warm_up(build, seats(build, sight(build, tmp_path)))


def test_the_aim_is_the_call_shown_and_a_little_of_every_legal_one() -> None:
    """Cross-entropy with label smoothing over legal calls; illegal ones are no part of it."""
    scores = torch.tensor([[1.0, 0.0, -1e9]])
    shown = Shown(torch.zeros(1, 1), torch.tensor([[True, True, False]]), torch.tensor([0]), torch.zeros(1))
    logp = torch.log_softmax(scores[0, :2], 0)
    assert float(cross_entropy(scores, shown, 0.0)) == pytest.approx(-float(logp[0]))
    mixed = -0.8 * float(logp[0]) - 0.2 * float(logp.mean())
    assert float(cross_entropy(scores, shown, 0.2)) == pytest.approx(mixed)


def test_critics_learn_what_the_experts_calls_came_to(tmp_path: Path) -> None:
    """In standardized rewards, by the agent's own turns; recorded calls without rewards teach them nothing."""
    build = built(warmup=WARMUP)
    standardizer = build.standardizer()
    assert standardizer is not None
    standardizer.update("buyer", np.array([-2.0, 2.0]))
    assert returns_to_go([1.0, 0.0, 2.0], 0.5, None, "buyer") == [1.5, 1.0, 2.0]
    assert returns_to_go([1.0, 0.0, 2.0], 0.5, standardizer, "buyer") == pytest.approx([0.75, 0.5, 1.0])
    shown = demonstrations(build, seats(build, sight(build, tmp_path)), build.learned["clerk"].warmup).shown
    assert shown["clerk"].returns.tolist() == [4.0] * 60
    assert set(shown["buyer"].returns.tolist()) == {3.75, 4.0}
    unknown = Shown(torch.zeros(2, 1), torch.ones(2, 1), torch.zeros(2), torch.tensor([float("nan"), 1.0]))
    assert float(critic_loss(torch.tensor([9.0, 3.0]), unknown)) == 4.0


def test_settings_without_effect_are_refused() -> None:
    """With the reason, each."""
    wrong = {
        "has no effect with model: smollm2": {"model": "smollm2"},
        "a model that knows nothing": {"lora": LORA},
        "it in float32|in float32: drop it": {"dtype": "bfloat16"},
        "is no multiple of twice": {"tiny": "{hidden: 30, heads: 4}"},
    }
    for message, keys in wrong.items():
        with pytest.raises(Refused, match=message):
            built(**keys)
    with pytest.raises(Refused, match="this environment shows arrays"):
        load(FILE.parents[2] / "experiments" / "tictactoe.yaml", ["policies.player={kind: causal_lm, roles: ['p*']}"])
