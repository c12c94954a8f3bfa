"""Language models in RLlib: the learner sees what the sampler saw, and what it learns the sampler plays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.lm.shop import LORA, WARMUP, Shop, shop
from trainers.rllib.learner import GRADIENT_NORM
from trainers.rllib.lm_learner import REFERENCE, REFERENCE_KL, EpisodeMinibatches, OutOfMemory, _times

BOTH = ({}, {"lora": LORA, "warmup": WARMUP})


def update(made: Shop, fragments: Any) -> Mapping[str, Any]:
    return made.learner.update(episodes=fragments, num_epochs=1, minibatch_size=32, timesteps={})


def batches(made: Shop, fragments: Any) -> dict[str, Any]:
    made.learner.before_gradient_based_update(timesteps={})
    return made.learner._batches(fragments)


@pytest.mark.parametrize("keys", BOTH, ids=["full", "lora"])
def test_learner_and_sampler_agree_on_every_decision_before_the_first_update(tmp_path: Path, keys: Any) -> None:
    """Their log-probabilities are the same to 1e-4: nothing was tokenized, cut or rounded differently."""
    made = shop(tmp_path, warm=bool(keys), **keys)
    fragments = made.runner.sample(num_timesteps=80)
    assert made.runner.policy_hashes() == made.learner.policy_hashes()
    for mid, batch in batches(made, fragments).items():
        with torch.no_grad():
            out = made.learner.module[mid]._forward_train(batch)
        logp = torch.log_softmax(out["action_dist_inputs"], -1)
        now = logp.gather(1, batch["actions"][:, None])[:, 0]
        assert now.numpy() == pytest.approx(batch["action_logp"].numpy(), abs=1e-4)
        assert len(now) > 30


@pytest.mark.parametrize("keys", BOTH, ids=["full", "lora"])
def test_what_the_learner_learned_is_what_the_sampler_plays(tmp_path: Path, keys: Any) -> None:
    """An update changes every policy's hash; after a sync the sampler's is the same again, and only then."""
    made = shop(tmp_path, warm=bool(keys), **keys)
    before = made.learner.policy_hashes()
    update(made, made.runner.sample(num_timesteps=80))
    after = made.learner.policy_hashes()
    assert all(before[m] != after[m] for m in before)
    assert made.runner.policy_hashes() == before
    made.sync()
    assert made.runner.policy_hashes() == after
    fragments = made.runner.sample(num_timesteps=40)
    for mid, batch in batches(made, fragments).items():
        with torch.no_grad():
            out = made.learner.module[mid]._forward_train(batch)
        logp = torch.log_softmax(out["action_dist_inputs"], -1)
        now = logp.gather(1, batch["actions"][:, None])[:, 0]
        assert now.numpy() == pytest.approx(batch["action_logp"].numpy(), abs=1e-4)


def test_only_adapters_and_critics_travel_and_are_saved(tmp_path: Path) -> None:
    """The base stays where it is, the same for all, and unchanged."""
    made = shop(tmp_path, warm=True, lora=LORA, warmup=WARMUP)
    base = made.learner.module["buyer"].pi.weights._base[0]
    assert base is made.learner.module["clerk"].pi.weights._base[0] is made.runner.module["buyer"].pi.weights._base[0]
    frozen = {n: p.clone() for n, p in base.model.named_parameters() if "lora_" not in n}
    state = made.learner.get_state(components="rl_module")["rl_module"]["buyer"]
    assert all("lora" in k or k.startswith("vf.") for k in state)
    travelling = made.learner.get_state(components="rl_module", inference_only=True)["rl_module"]["buyer"]
    assert travelling.keys() == {k for k in state if not k.startswith("vf.")}
    update(made, made.runner.sample(num_timesteps=80))
    assert all(p.equal(frozen[n]) for n, p in base.model.named_parameters() if "lora_" not in n)
    assert all(not p.requires_grad for n, p in base.model.named_parameters() if "lora_" not in n)


def test_a_minibatch_in_many_passes_is_one_gradient_step(tmp_path: Path) -> None:
    """Whatever ``chunk`` is, the weights after an update are the same."""
    found = []
    for chunk in ("100000", "256"):
        made = shop(tmp_path, chunk=chunk)
        found.append((made, made.runner.sample(num_timesteps=80)))
    one, other = (m for m, _ in found)
    other.learner.set_state(one.learner.get_state())
    for made in (one, other):
        update(made, found[0][1])
    for mid in ("buyer", "clerk"):
        for p, q in zip(one.learner.module[mid].parameters(), other.learner.module[mid].parameters(), strict=True):
            assert p.detach().numpy() == pytest.approx(q.detach().numpy(), abs=2e-5)


@pytest.mark.parametrize("keys", BOTH, ids=["full", "lora"])
def test_a_penalty_pulls_a_policy_back_to_its_reference(tmp_path: Path, keys: Any) -> None:
    """The divergence that is reported is the policy's own, and a heavy weight on it makes it fall."""
    gone: dict[str, list[float]] = {}
    for weight in ("0.0001", "3"):
        made = shop(tmp_path, "ppo.lr=1e-3", warm=bool(keys), kl=weight, **keys)
        fragments = made.runner.sample(num_timesteps=80)
        module = made.learner.module["clerk"]
        with torch.no_grad():
            for p in module.pi.parameters():
                p.add_(0.5 * torch.randn_like(p) if keys else 0.1 * torch.randn_like(p))
        batch = batches(made, fragments)["clerk"]
        far = divergence(module, batch)
        figures = [float(update(made, fragments)["clerk"][REFERENCE_KL].peek()) for _ in range(8)]
        assert figures[0] == pytest.approx(far, rel=0.3)
        gone[weight] = figures
    assert gone["3"][-1] < 0.7 * gone["3"][0]
    assert gone["3"][-1] / gone["3"][0] < gone["0.0001"][-1] / gone["0.0001"][0]


def divergence(module: Any, batch: dict[str, Any]) -> float:
    """KL from the reference by hand, nat."""
    with torch.no_grad():
        now = torch.log_softmax(module._forward_train(batch)["action_dist_inputs"], -1)
        then = torch.log_softmax(module.reference_scores(batch), -1)
    return float((now.exp() * (now - then)).sum(-1).mean())


def test_learning_goes_on_exactly_from_a_saved_state(tmp_path: Path) -> None:
    """Weights, optimizer and chance: one update after a restore is the update that would have come."""
    made = shop(tmp_path)
    fragments = made.runner.sample(num_timesteps=80)
    update(made, fragments)
    saved = made.learner.get_state()
    update(made, fragments)
    hashes = made.learner.policy_hashes()
    again = shop(tmp_path)
    again.learner.set_state(saved)
    assert again.learner.policy_hashes() != hashes
    update(again, fragments)
    assert again.learner.policy_hashes() == hashes


def test_minibatches_hold_every_row_once_with_turns_of_an_episode_side_by_side(tmp_path: Path) -> None:
    """In another order each epoch."""
    made = shop(tmp_path)
    whole = batches(made, made.runner.sample(num_timesteps=80))["buyer"]
    numbered = {**whole, "row": torch.arange(len(whole["advantages"]))}
    epochs = EpisodeMinibatches({"buyer": numbered}, epochs=2, size=16, chance=np.random.default_rng(0))
    rows = [m.rows["buyer"]["row"] for m in epochs]
    half = len(rows) // 2
    for epoch in (rows[:half], rows[half:]):
        assert sorted(torch.cat(epoch).tolist()) == list(range(len(numbered["row"])))
    assert torch.cat(rows[:half]).tolist() != torch.cat(rows[half:]).tolist()


def test_out_of_memory_names_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the policy."""
    made = shop(tmp_path)
    fragments = made.runner.sample(num_timesteps=40)

    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(type(made.learner.module["buyer"]), "_forward_train", full)
    with pytest.raises(
        OutOfMemory, match=r"policies.*out of memory.*lower chunk from 16384 to 8192, or set checkpoint"
    ):
        update(made, fragments)


def test_a_language_model_learns_beside_an_encoder(tmp_path: Path) -> None:
    """In one team, one learner and one update."""
    from assembly.build import Build
    from assembly.loading import load
    from tests.lm.shop import FILE, TINY
    from trainers.lm_prepare import prompts
    from trainers.measure import featurizers, measure
    from trainers.rllib.algorithm import algorithm_config, seats

    build = Build(load(FILE, [f"policies.clerk={{kind: causal_lm, tiny: {TINY}}}"]), FILE.parent)
    found = measure(build, 20)
    seated = seats(build, {**featurizers(build, found), **prompts(build, found.texts, tmp_path)})
    config: Any = algorithm_config(build, seated, build.standardizer())
    runner = config.env_runner_cls(config=config)
    made = Shop(build, seated, runner, config.build_learner(spaces=runner.get_spaces()))
    made.sync()
    before = made.learner.policy_hashes()
    figures = update(made, runner.sample(num_timesteps=80))
    assert all(before[m] != h for m, h in made.learner.policy_hashes().items())
    assert all(float(figures[m][GRADIENT_NORM].peek()) > 0 for m in ("buyer", "clerk"))
    assert REFERENCE not in batches(made, runner.sample(num_timesteps=40))["clerk"]


def test_step_sizes_keep_their_course_at_another_pace() -> None:
    """The critic's is the model's, times a number."""
    schedule: Any = [[0, 1e-3], [100, 1e-4]]
    assert _times(schedule, 10.0) == [[0, 1e-2], [100, 1e-3]]
    assert _times(1e-3, 10.0) == pytest.approx(1e-2)
