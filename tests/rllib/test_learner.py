"""Learning: RLlib's batches and loss, every row seen equally often, and a state from which it goes on exactly."""

import pickle
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.evaluation.postprocessing import Postprocessing

from tests.rllib.toys import ABC, Company, Welford, config
from trainers.rllib.chance import NonFinite
from trainers.rllib.connector import explained_variance
from trainers.rllib.fragment import AGENT, Fragment, taken
from trainers.rllib.learner import NothingToLearn
from trainers.rllib.minibatches import FairMinibatches
from trainers.rllib.refusals import Unsupported
from trainers.rllib.slots import policy_hash

KEPT = (Columns.OBS, Columns.ACTIONS, Columns.ACTION_LOGP, Postprocessing.ADVANTAGES, Postprocessing.VALUE_TARGETS)


def trajectories(columns: dict[str, Any]) -> Iterator[np.ndarray]:
    """The rows of each trajectory, with its bootstrap row where it was cut."""
    start = 0
    ends = columns[Columns.TERMINATEDS] | columns[Columns.TRUNCATEDS]
    for end in np.flatnonzero(ends).tolist():
        stop = end + 1 + int(columns[Columns.TRUNCATEDS][end])
        yield np.arange(start, stop)
        start = stop


def test_explained_variance_of_targets_that_vary_by_rounding_only() -> None:
    """It is 0, and no huge number; a small scale is none of that."""
    same = np.full(500, 0.95, np.float32) + np.float32(6e-8) * (np.arange(500) % 2).astype(np.float32)
    values = np.linspace(0.9, 1.0, 500, dtype=np.float32)
    assert explained_variance(same, values) == 0.0
    small = np.linspace(0, 1e-5, 500, dtype=np.float32)
    assert explained_variance(small, small) == pytest.approx(1.0)
    assert explained_variance(np.zeros(5, np.float32), np.ones(5, np.float32)) == 0.0


def as_episodes(fragment: Fragment) -> list[SingleAgentEpisode]:
    """The same data as RLlib's own episodes."""
    made: list[SingleAgentEpisode] = []
    for mid, columns in fragment.columns.items():
        for rows in trajectories(columns):
            acted = rows[columns[Columns.LOSS_MASK][rows]]
            terminated = bool(columns[Columns.TERMINATEDS][acted[-1]])
            seen = np.append(acted, acted[-1]) if terminated else rows
            extra = {k: columns[k][acted] for k in (Columns.ACTION_LOGP, Columns.ACTION_DIST_INPUTS)}
            name: Any = str(len(made))
            episode = SingleAgentEpisode(
                id_=name,
                observations=InfiniteLookbackBuffer(taken(columns[Columns.OBS], seen), 0),
                actions=InfiniteLookbackBuffer(columns[Columns.ACTIONS][acted], 0),
                rewards=InfiniteLookbackBuffer(columns[Columns.REWARDS][acted], 0),
                infos=[{}] * (len(acted) + 1),
                terminated=terminated,
                truncated=not terminated,
                extra_model_outputs={k: InfiniteLookbackBuffer(v, 0) for k, v in extra.items()},
                len_lookback_buffer=0,
                agent_id=fragment.agents[int(columns[AGENT][acted[0]])],
                module_id=mid,
                multi_agent_episode_id=name,
                t_started=0,
            )
            episode.to_numpy()
            made.append(episode)
    return made


def stock(company: Company) -> Any:
    """RLlib's own learner with its own connectors and the same weights."""
    made = company.config.copy(copy_frozen=False)
    made.learners(
        learner_class=PPOTorchLearner, learner_connector=None, add_default_connectors_to_learner_pipeline=True
    )
    made._learner_connector = None
    learner = made.build_learner(spaces=company.runner.get_spaces())
    learner.module.set_state(company.learner.module.get_state())
    return learner


def batches(learner: Any, episodes: Any) -> dict[str, Any]:
    pipeline = learner._learner_connector
    return pipeline(rl_module=learner.module, batch={}, episodes=episodes, shared_data={}, metrics=learner.metrics)


@pytest.mark.parametrize(
    ("mode", "case"),
    [
        ("complete_episodes", {"end": "term", "rounds": 4, "step_reward": True}),
        ("complete_episodes", {"end": "trunc", "rounds": 4, "step_reward": True}),
        ("complete_episodes", {"end": "mixed", "rounds": 4, "die": True}),
        ("truncate_episodes", {"end": "trunc", "rounds": 4, "die": True}),
    ],
)
def test_batch_is_the_one_that_rllib_would_make(mode: str, case: dict[str, Any]) -> None:
    """Terminated, truncated, early left, cut by the fragment: the stock pipeline makes the same rows of it."""
    made = config(**case).env_runners(batch_mode=mode, rollout_fragment_length=25).training(use_kl_loss=True)
    company = Company(made)
    (fragment,) = company.runner.sample()
    mine = batches(company.learner, [fragment])
    theirs = batches(stock(company), as_episodes(fragment))
    assert set(mine) == set(theirs) == set(ABC)
    for mid, batch in mine.items():
        kept = theirs[mid][Columns.LOSS_MASK].bool() if Columns.LOSS_MASK in theirs[mid] else slice(None)
        for key in (Columns.OBS, Columns.ACTIONS, Columns.ACTION_LOGP):
            for a, b in zip(_leaves(batch[key]), _leaves(theirs[mid][key]), strict=True):
                assert torch.equal(a, b[kept].to(a.dtype))
        targets = theirs[mid][Postprocessing.VALUE_TARGETS][kept]
        torch.testing.assert_close(batch[Postprocessing.VALUE_TARGETS], targets, rtol=0, atol=1e-6)
        # RLlib standardizes over bootstrap rows, too: compare what both are once more standardized over real rows
        advantages = theirs[mid][Postprocessing.ADVANTAGES][kept]
        again = (advantages - advantages.mean()) / advantages.std(unbiased=False)
        torch.testing.assert_close(batch[Postprocessing.ADVANTAGES], again, rtol=0, atol=2e-5)


def _leaves(column: Any) -> list[torch.Tensor]:
    return [column[k] for k in sorted(column)] if isinstance(column, dict) else [column]


@pytest.mark.parametrize("kl", [False, True])
@pytest.mark.parametrize(("env", "kind"), [("relay", ""), ("chorus", "multi"), ("chorus", "box")])
def test_loss_is_rllibs(env: str, kind: str, kl: bool) -> None:
    """The same batch gives the same number, with and without the KL penalty, for every kind of action."""
    case: dict[str, Any] = {"kind": kind} if kind else {}
    company = Company(config(env, **case).training(use_kl_loss=kl, vf_clip_param=0.05))
    batch = batches(company.learner, company.runner.sample())["B"]
    with torch.no_grad():
        for parameter in company.learner.module["B"].parameters():
            parameter.add_(0.05)
    ours = _loss(company.learner, company, batch)
    theirs = _loss(stock(company), company, batch)
    assert ours == pytest.approx(theirs, abs=1e-6)


def _loss(learner: Any, company: Company, batch: dict[str, Any]) -> float:
    out = learner.module["B"].forward_train(batch)
    batch = {
        Columns.ACTION_DIST_INPUTS: out[Columns.ACTION_DIST_INPUTS].detach(),
        **batch,
    }  # RLlib asks for them always
    settings = company.config.get_config_for_module("B")
    return learner.compute_loss_for_module(module_id="B", config=settings, batch=batch, fwd_out=out).item()


@pytest.mark.parametrize("size", [None, 1, 7, 64, 1000])
def test_every_row_is_seen_once_an_epoch(size: int | None) -> None:
    """A module with few rows is not trained over and over while another one has many."""
    columns = {m: {Postprocessing.ADVANTAGES: torch.arange(n)} for m, n in {"A": 200, "B": 13, "C": 1}.items()}
    seen: dict[str, Counter[int]] = {m: Counter() for m in columns}
    for minibatch in FairMinibatches(columns, epochs=3, size=size, chance=np.random.default_rng(0)):
        for mid, batch in minibatch.rows.items():
            assert 0 < len(batch[Postprocessing.ADVANTAGES]) <= (size or 200)
            seen[mid].update(batch[Postprocessing.ADVANTAGES].tolist())
    assert all(set(counts.values()) == {3} for counts in seen.values())
    assert {mid: len(counts) for mid, counts in seen.items()} == {"A": 200, "B": 13, "C": 1}


def test_resuming_is_exact() -> None:
    """Three iterations, saved, taken up by another process' objects, three more: bit for bit six iterations."""

    def made() -> Company:
        schedule = [[0, 0.5], [1000, 0.0]]
        return Company(config(rounds=2, batch=120, standardizer=Welford()).training(entropy_coeff=schedule))

    whole, first = made(), made()
    for _ in range(6):
        whole.train()
    for _ in range(3):
        first.train()
    second = made()
    second.load(pickle.loads(pickle.dumps(first.state())))  # noqa: S301 - its own
    for _ in range(3):
        second.train()
    assert second.returns == whole.returns[3:]
    assert second.steps == whole.steps
    for part in ("rl_module", "optimizer", "standardizer", "schedules", "weights_seq_no"):
        assert _same(second.learner.get_state()[part], whole.learner.get_state()[part]), part
    assert (
        second.learner.get_state()["randomness"]["minibatches"]
        == whole.learner.get_state()["randomness"]["minibatches"]
    )
    assert second.runner.get_state()["episodes"] == whole.runner.get_state()["episodes"]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return set(one) == set(other) and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else bool(one == other)


def test_going_back_to_an_earlier_state_brings_its_weights_back() -> None:
    """RLlib keeps the newer weights when it is given older ones; here a checkpoint is a checkpoint."""
    company = Company(config(batch=96))
    company.train()
    saved = company.state()
    hashes = company.learner.policy_hashes()
    company.train()
    assert company.learner.policy_hashes() != hashes
    company.load(saved)
    assert company.learner.policy_hashes() == company.runner.policy_hashes() == hashes


def test_policy_hash_tells_one_weight_from_another() -> None:
    """The same parameters have the same hash; the least change of one has another."""
    company = Company(config())
    assert company.learner.policy_hashes() == company.runner.policy_hashes()
    module = company.learner.module["A"]
    before = policy_hash(module)
    with torch.no_grad():
        next(module.parameters()).view(-1)[0] += 1e-6
    assert policy_hash(module) != before


def test_rewards_are_standardized_by_what_was_known_before() -> None:
    """The first batch is paid raw; the second by the first one's statistics; each sample is counted once."""
    known = Welford()
    company = Company(config(rounds=1, batch=120, standardizer=known))
    first = company.train()["A"]["rewards"]["A"]
    assert first["standardized_mean"].peek() == pytest.approx(first["raw_mean"].peek())
    count, mean, squares = known.known["A"]
    assert count == 40
    second = company.train()["A"]["rewards"]["A"]
    expected = (second["raw_mean"].peek() - mean) / (squares / count) ** 0.5
    assert second["standardized_mean"].peek() == pytest.approx(expected, abs=1e-5)
    assert known.known["A"][0] == 80


def test_figures_of_an_update_are_reported() -> None:
    """Under each module: what PPO is judged by, as finite numbers."""
    found = Company(config()).train()["B"]
    for name in (
        "entropy",
        "clip_fraction",
        "approx_kl",
        "gradient_norm",
        "vf_explained_var",
        "policy_loss",
        "vf_loss",
    ):
        value = found[name]
        assert np.isfinite(value.peek() if hasattr(value, "peek") else value), name


def test_a_loss_that_is_not_finite_stops_training() -> None:
    """An infinite reward names the module and what went wrong; no weight of it has changed."""
    company = Company(config())
    (fragment,) = company.runner.sample()
    fragment.columns["C"][Columns.REWARDS][0] = np.inf
    before = policy_hash(company.learner.module["C"])
    with np.errstate(invalid="ignore"), pytest.raises(NonFinite, match="module C"):
        company.learner.update(episodes=[fragment], num_epochs=1, minibatch_size=64)
    assert policy_hash(company.learner.module["C"]) == before


def test_a_batch_without_rows_is_an_error() -> None:
    """Zero updates never pass for an iteration."""
    with pytest.raises(NothingToLearn):
        Company(config()).learner.update(episodes=[Fragment({}, ABC, 12)], num_epochs=1)


def test_policies_that_do_not_learn_stay_as_they_are() -> None:
    """Frozen teammates play, and neither update nor statistics touch them."""
    known = Welford()
    company = Company(config(standardizer=known).multi_agent(policies_to_train=["A"]))
    before = company.learner.policy_hashes()
    company.train()
    after = company.learner.policy_hashes()
    assert [m for m in ABC if before[m] != after[m]] == ["A"]
    assert set(known.known) == {"A"}


def test_bfloat16_is_close() -> None:
    """Autocast changes the loss by rounding only, and training goes on."""
    company = Company(config().learners(learner_config_dict={"autocast": True}))
    found = company.train()["A"]
    assert np.isfinite(float(found["total_loss"]))


def test_several_learners_and_stock_connectors_are_refused() -> None:
    """They would train on other statistics, or on no advantages at all."""
    with pytest.raises(Unsupported, match="add_default_connectors"):
        config().learners(add_default_connectors_to_learner_pipeline=True).build_learner(
            spaces=Company(config()).runner.get_spaces()
        )


@pytest.mark.parametrize("case", [{}, {"env": "chorus", "end": "trunc"}, {"env": "chorus", "kind": "multi"}])
def test_the_toys_are_learned(case: dict[str, Any]) -> None:
    """Eight iterations take chance (3 of 9) to nearly all right, masked or not, turn by turn or at once."""
    company = Company(config(batch=600, envs=8, standardizer=Welford(), **case))
    for _ in range(8):
        company.train()
    assert company.returns[0] < 4.5
    assert company.returns[-1] > 7.5
