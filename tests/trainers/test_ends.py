"""How a run ends: done, at a limit, or with an error that says what went wrong."""

import math
from typing import Any

import pytest
import torch

from assembly.build import Build
from runtime.records import Decided, Observed
from telemetry.records_file import episode_files, read_episode
from tests.trainers.commands import QUICK, Command, Ran
from trainers import session
from trainers.alarm import Alarm
from trainers.rllib import algorithm

pytestmark = [
    # Ray leaves its processes to themselves, and RLlib calls what it has deprecated.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def test_a_result_has_the_promised_fields(whole: Ran) -> None:
    """result.json, the run directory and the closing table."""
    assert whole.code == 0, whole.err
    result = whole.result
    assert result["status"] == "done"
    assert result["iterations"] == 6
    assert result["env_steps"] == whole.metrics[-1]["env_steps"]
    assert {"run_dir", "version", "seed", "seconds", "baselines", "score"} <= result.keys()
    held_out = result["eval"]
    assert {"episodes", "return_mean", "return_ci95", "score", "success_rate"} <= held_out.keys()
    assert held_out["episodes"] == 40
    low, high = held_out["return_ci95"]
    assert low <= held_out["return_mean"] <= high
    assert result["baselines"].keys() == {"random", "by_the_list"}
    assert result["baselines"]["by_the_list"] == 3.75
    share = (held_out["return_mean"] - result["baselines"]["random"]) / (3.75 - result["baselines"]["random"])
    assert result["score"] == pytest.approx(share)
    assert held_out["agents"].keys() == {"buyer", "clerk"}
    assert held_out["agents"]["clerk"]["tool_calls"] == 1.0
    assert result["role_swaps"].keys() == {"buyer<->clerk"}
    assert whole.directory
    made = {p.name for p in whole.directory.iterdir()}
    assert made >= {"experiment.yaml", "metrics.jsonl", "tensorboard", "checkpoints", "records", "version"}
    assert made >= {"result.json", "report.html"}
    for word in ("swap buyer<->clerk", "agent clerk", "baseline by_the_list", "version", "report"):
        assert word in whole.out


def test_a_sampled_training_episode_says_how_sure_the_policies_were(whole: Ran) -> None:
    """Each decision has its candidates' probabilities, its own among them."""
    assert whole.directory
    records = read_episode(episode_files(whole.directory / "records")[0])
    seen = {r.decision_id: r for r in records if isinstance(r, Observed)}
    decided = [r for r in records if isinstance(r, Decided)]
    assert len(decided) >= 2
    for decision in decided:
        assert decision.probabilities is not None
        assert decision.logp is not None
        assert sum(decision.probabilities) == pytest.approx(1, abs=1e-4)
        own = seen[decision.decision_id].candidates.index(decision.call)
        assert decision.probabilities[own] == pytest.approx(math.exp(decision.logp), abs=1e-4)


def test_the_terminal_shows_what_is_ours(whole: Ran) -> None:
    """One line an iteration, a line a baseline, and nothing of what libraries say of themselves."""
    assert whole.err == ""
    for noise in ("WARNING", "API stack", "Deprecat", "ray."):
        assert noise not in whole.out
    assert len([line for line in whole.out.splitlines() if line.startswith("iter ")]) == 6


def test_set_is_written_down_and_another_seed_is_another_curve(command: Command, whole: Ran) -> None:
    """What --set changes stands in the run directory's experiment.yaml."""
    other = command("seed=1", "stop.iterations=1", *QUICK)
    assert other.code == 0, other.err
    assert other.directory
    assert "seed: 1\n" in (other.directory / "experiment.yaml").read_text()
    assert other.metrics[0]["return_mean"] != whole.metrics[0]["return_mean"]
    assert other.result["seed"] == 1


def test_evaluation_touches_nothing(command: Command, whole: Ran) -> None:
    """The same run without evaluations learns the same, bit by bit: held out is held out."""
    blind = command(*QUICK, "stop.iterations=6")
    assert blind.code == 0, blind.err
    seen = [{k: v for k, v in m.items() if k != "evaluation"} for m in whole.metrics]
    assert [{k: v for k, v in m.items() if k != "evaluation"} for m in blind.metrics] == seen
    assert blind.result["version"] == whole.result["version"]


def test_what_was_drawn_before_training_changes_nothing(
    command: Command, whole: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the gates took and whatever they drew, the weights that training begins with are the seed's."""
    vetted = session.vetted

    def longer(*args: Any) -> Any:
        torch.rand(7)
        return vetted(*args)

    monkeypatch.setattr(session, "vetted", longer)
    ran = command(*QUICK, "stop.iterations=6")
    assert ran.code == 0, ran.err
    assert ran.result["version"] == whole.result["version"]


def test_no_scenario_is_both_trained_on_and_held_out(whole_build: Build) -> None:
    """The splits' ids and seeds are apart."""
    train, held_out = ([whole_build.source(s)(k) for k in range(40)] for s in ("train", "eval"))
    assert not {s.id for s in train} & {s.id for s in held_out}
    assert not {s.seed for s in train} & {s.seed for s in held_out}


def test_a_limit_stops_cleanly_within_it(command: Command) -> None:
    """limits.usd: an estimate before, a checkpoint at the end, and no dollar more than was granted."""
    ran = command("limits.usd=100", "stop.iterations=50", *QUICK)
    assert ran.code == 0, ran.err
    assert ran.result["status"] == "limit"
    assert "estimate: " in ran.out
    assert "limits.usd: " in ran.result["reason"]
    assert 0 < ran.result["iterations"] < 50
    assert ran.directory
    last = max((ran.directory / "checkpoints").glob("[0-9]*"))
    assert int(last.name) == ran.result["iterations"]


def test_a_run_stops_at_its_minutes_and_at_its_score(command: Command) -> None:
    """stop.minutes and stop.score end it as done."""
    for key, reason in (("stop.minutes=0.00001", "minutes"), ("stop.score=-5", "held-out score")):
        ran = command(key, *QUICK[1:], "evaluation.every=1")
        assert (ran.code, ran.result["status"], ran.result["iterations"]) == (0, "done", 1), ran.err
        assert reason in ran.result["reason"]


def test_missing_rewards_stop_the_run(command: Command) -> None:
    """5% missing, seen at random play or later: exit 5, naming the term and what it raised."""
    early = command("rewards.terms=[{use: 'little_shop:lossy', args: {every: 20}}]", *QUICK)
    assert early.code == 5, early.err
    assert "term lossy: " in early.out
    assert "nobody wrote the price down" in early.out
    assert early.result["status"] == "missing_rewards"
    assert early.directory
    assert "Too many rewards were missing." in (early.directory / "report.html").read_text()
    late = command(
        "rewards.terms=[{use: 'little_shop:lossy', args: {every: 7, after: 400}}]", *QUICK, "stop.iterations=40"
    )
    assert late.code == 5, late.err
    assert late.result["iterations"] > 1
    assert "nobody wrote the price down" in late.result["reason"]


def test_stale_weights_are_an_error(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sampler that does not get the learner's new weights: exit 6."""
    monkeypatch.setattr("ray.rllib.env.env_runner_group.EnvRunnerGroup.sync_weights", lambda *_, **__: None)
    ran = command(*QUICK)
    assert ran.code == 6, ran.err
    assert "stale weights of " in ran.result["reason"]


def test_zero_updates_are_an_error(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """An iteration that moves no parameter: exit 6."""
    monkeypatch.setattr(algorithm, "linear", lambda *_: [[0, 0.0], [1, 0.0]])
    ran = command(*QUICK)
    assert ran.code == 6, ran.err
    assert "zero updates" in ran.result["reason"]


def test_rollback_goes_back_with_a_smaller_step(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the checkpoint before the trouble began, twice; then it ends, naming the last good one."""

    def trouble(self: Alarm, report: Any, tally: Any) -> dict[str, str]:
        return {"it": "it went wrong"} if report.iteration >= 3 else {}

    monkeypatch.setattr(Alarm, "_reasons", trouble)
    settings = ("collapse.action=rollback", "collapse.rollbacks=2", "collapse.patience=2", "checkpoints.every=1")
    ran = command(*settings, "ppo.lr=1.0e-3", *QUICK)
    assert ran.code == 6, ran.err
    assert "it went wrong for 2 iterations: back to iteration 2 with 0.5 of the learning rate" in ran.out
    assert "back to iteration 2 with 0.25 of the learning rate (rollback 2 of 2)" in ran.out
    assert ran.result["status"] == "collapsed"
    assert ran.directory
    assert f"last good checkpoint: {ran.directory}/checkpoints/000002" in ran.result["reason"]
    assert "Training collapsed." in (ran.directory / "report.html").read_text()
    assert [m["iteration"] for m in ran.metrics] == [1, 2, 3, 4]
    rates = [m["policies"]["clerk"]["lr"] for m in ran.metrics]
    assert rates == pytest.approx([1e-3, 1e-3, 2.5e-4, 2.5e-4])


def test_a_world_that_raises_is_told_by_file_and_line(command: Command) -> None:
    """Exit 1: whose code, where, and what it raised; no traceback of ours."""
    ran = command("team.args={burns: raises}", *QUICK)
    assert ran.code == 1
    assert "the team's own code raised: OSError at " in ran.err
    assert "little_shop.py:" in ran.err
    assert "the shop has burnt down" in ran.err
    assert "Traceback" not in ran.err


def test_a_cluster_that_does_not_answer(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 3, at once, with what to do."""
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    ran = command("resources.ray_address='127.0.0.1:9'", *QUICK)
    assert ran.code == 3
    assert "nothing listens at 127.0.0.1 port 9" in ran.err


def test_two_samplers_count_every_sample_once(command: Command) -> None:
    """Remote samplers find the team beside the file, and the episodes they played add up to the steps."""
    ran = command("resources.env_runners=2", "stop.iterations=2", *QUICK)
    assert ran.code == 0, ran.err
    assert ran.metrics[0]["env_steps"] >= 200
    for before, now in zip([{"env_steps": 0}, *ran.metrics], ran.metrics, strict=False):
        episodes = (now["env_steps"] - before["env_steps"]) / now["episode_len_mean"]
        assert episodes == pytest.approx(round(episodes))


def test_a_world_that_raises_at_a_remote_sampler(command: Command) -> None:
    """It is told as if it were here, and not played around."""
    ran = command("team.args={burns: raises, from_case: 1200}", "resources.env_runners=2", "stop.iterations=40", *QUICK)
    assert ran.code == 1, ran.out
    assert "the shop has burnt down" in ran.err
