"""Resume is a law: a run that was cut short and went on ends like one that was not."""

import pickle
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainers.commands import Command, Ran
from trainers.checkpoints import Checkpoints, NoCheckpoint, TrainerState
from trainers.listeners import MetricsLines

pytestmark = [
    # Ray leaves its processes to themselves, and RLlib calls what it has deprecated.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TIMES = ("metrics_logger", "_timers", "metrics")
"""Parts of a checkpoint that hold durations."""


def states(directory: Path) -> dict[str, Any]:
    """Every state in the last checkpoint of a run, by its place."""
    last = max((directory / "checkpoints").glob("[0-9]*"))
    names = ("state.pkl", "module_state.pkl", "algorithm_state.pkl")
    return {str(p.relative_to(last)): pickle.loads(p.read_bytes()) for n in names for p in last.rglob(n)}  # noqa: S301


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Where two states differ by a bit."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [k for k in {**one, **other} if k not in TIMES]
        return [d for k in keys for d in differences(one.get(k), other.get(k), f"{at}/{k}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return [d for i, (a, b) in enumerate(zip(one, other, strict=True)) for d in differences(a, b, f"{at}/{i}")]
    if hasattr(one, "shape") or hasattr(other, "shape"):
        same = np.asarray(one).tobytes() == np.asarray(other).tobytes()
    else:
        same = one == other
    return [] if same else [at]


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Send this process a signal when an iteration has been written down."""

    def arrange(iteration: int, number: signal.Signals = signal.SIGINT) -> None:
        show = MetricsLines.show

        def shown(self: MetricsLines, report: Any, tally: Any) -> None:
            show(self, report, tally)
            if report.iteration == iteration:
                signal.raise_signal(number)

        monkeypatch.setattr(MetricsLines, "show", shown)

    return arrange


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_resumed_is_undisturbed_bit_by_bit(
    command: Command, whole: Ran, stop_at: Any, number: signal.Signals
) -> None:
    """Ctrl-C after 3 of 6 iterations, then --resume: the same parameters, optimizers, statistics and figures."""
    stop_at(3, number)
    cut = command()
    assert cut.code == 130, cut.err
    assert f"python -m trainers.run --resume {cut.directory}" in cut.out
    assert cut.result["status"] == "interrupted"
    assert cut.metrics == whole.metrics[:3]
    rest = command(resume=cut.directory)
    assert rest.code == whole.code == 0, rest.err
    assert "resumed at iteration 3" in rest.out
    assert rest.metrics == whole.metrics
    assert rest.result["version"] == whole.result["version"]
    assert rest.result["eval"] == whole.result["eval"]
    assert whole.directory
    assert rest.directory
    mine, theirs = states(rest.directory), states(whole.directory)
    assert any("optimizer" in str(s.keys()) for s in mine.values() if isinstance(s, dict))
    assert differences(theirs, mine) == []


def test_a_finished_run_has_nothing_left_to_do(command: Command, whole: Ran) -> None:
    """Resuming it is no error, and trains nothing."""
    again = command(resume=whole.directory)
    assert again.code == 0
    assert "nothing left to do" in again.out
    assert len(again.metrics) == 6


def test_a_finished_run_goes_on_when_it_is_given_more_to_do(command: Command, whole: Ran, tmp_path: Path) -> None:
    """--resume with --set stop.iterations=7 trains one iteration more, and the file says so from then on."""
    assert whole.directory
    copy = tmp_path / "copy"
    shutil.copytree(whole.directory, copy)
    more = command("stop.iterations=7", resume=copy)
    assert more.code == 0, more.err
    assert [m["iteration"] for m in more.metrics] == [1, 2, 3, 4, 5, 6, 7]
    assert more.metrics[:6] == whole.metrics
    assert "iterations: 7" in (copy / "experiment.yaml").read_text()


def test_a_run_killed_before_its_first_checkpoint_begins_again(command: Command, whole: Ran, tmp_path: Path) -> None:
    """Lines that no checkpoint stands behind are written anew, and are the same."""
    assert whole.directory
    copy = tmp_path / "copy"
    shutil.copytree(whole.directory, copy)
    shutil.rmtree(copy / "checkpoints")
    (copy / "result.json").unlink()
    again = command(resume=copy)
    assert again.code == 0, again.err
    assert again.metrics == whole.metrics


def _half(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "state.pkl").write_bytes(b"half of it")


def test_a_checkpoint_that_was_being_written_counts_for_nothing(tmp_path: Path) -> None:
    """A process killed while it writes leaves the checkpoint before; the next one clears the remains away."""
    kept = Checkpoints(tmp_path, keep=3)
    kept.save(TrainerState(iteration=2), _half)

    def killed(path: Path) -> None:
        _half(path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.save(TrainerState(iteration=4), killed)
    last = Checkpoints(tmp_path, keep=3).last()
    assert last
    assert last.state.iteration == 2
    kept.save(TrainerState(iteration=6), _half)
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["000002", "000006"]


def test_the_last_three_and_the_best_are_kept(tmp_path: Path) -> None:
    """The best by held-out score stays beside the last ones."""
    kept = Checkpoints(tmp_path, keep=3)
    for iteration in (2, 4, 6, 8, 10):
        kept.save(TrainerState(iteration=iteration, best_iteration=4 if iteration >= 4 else 2), _half)
    assert [c.state.iteration for c in kept] == [4, 6, 8, 10]


def test_a_checkpoint_that_cannot_be_read_is_no_reason_to_begin_again(tmp_path: Path) -> None:
    """It is an error that names the file: beginning anew would throw the run away."""
    kept = Checkpoints(tmp_path, keep=3)
    saved = kept.save(TrainerState(iteration=2), _half)
    (saved.path / "trainer.json").write_text("{")
    with pytest.raises(NoCheckpoint, match="000002 cannot be read"):
        kept.last()
