import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.durable import RecordLost
from telemetry.metrics_file import MetricsFile, read_metrics
from telemetry.records_file import RecordsDir, episode_files, read_episode
from telemetry.scalars import ITERATION, IterationReport, flatten, largest_kl, mean_entropy, scalars
from tests.telemetry.samples import EVALUATION, QUICK, episode, iteration

FULL = Path("/dev/full")
"""A device that accepts to be opened and refuses every byte: the disk is full."""
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


def numbers(path: Path) -> list[int]:
    return [report.iteration for report in read_metrics(path)]


def filled(path: Path, count: int) -> Path:
    with MetricsFile(path) as metrics:
        for k in range(1, count + 1):
            metrics.append(iteration(k, EVALUATION if k == 2 else None))
    return path


def test_a_line_is_on_the_disk_when_append_returns(tmp_path: Path) -> None:
    """What was appended can be read while the file is open, as it was written."""
    with MetricsFile(tmp_path / "metrics.jsonl") as metrics:
        metrics.append(iteration(1, EVALUATION))
        assert read_metrics(metrics.path) == [iteration(1, EVALUATION)]


def test_a_resumed_run_forgets_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    """After truncation to the checkpoint the run goes on with the next iteration."""
    path = filled(tmp_path / "metrics.jsonl", 5)
    with MetricsFile(path) as metrics:
        metrics.truncate_after(3)
        assert numbers(path) == [1, 2, 3]
        metrics.append(iteration(4))
    assert numbers(path) == [1, 2, 3, 4]


@pytest.mark.parametrize("left", [1, 30])
def test_a_line_torn_by_a_kill_is_dropped(tmp_path: Path, left: int) -> None:
    """A process killed in the middle of a write leaves a file that reads, and goes on, without the torn line."""
    path = filled(tmp_path / "metrics.jsonl", 3)
    whole = path.read_bytes()
    os.truncate(path, len(whole) - left)
    assert numbers(path) == [1, 2]
    with MetricsFile(path) as metrics:
        metrics.append(iteration(3))
    assert path.read_bytes().count(b"\n") == 3
    assert numbers(path) == [1, 2, 3]


def test_an_iteration_is_never_written_twice(tmp_path: Path) -> None:
    """A resumed run that forgot to truncate is told so."""
    with MetricsFile(filled(tmp_path / "metrics.jsonl", 3)) as metrics, pytest.raises(ValueError, match="truncate"):
        metrics.append(iteration(3))


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    """Only the last line may be torn: any other that cannot be read is an error with its place."""
    path = filled(tmp_path / "metrics.jsonl", 1)
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(RecordLost, match="line 1"):
        read_metrics(path)


@needs_full
def test_a_full_disk_stops_the_run(tmp_path: Path) -> None:
    """A lost record is an error with the file's name, at the iteration that was lost."""
    path = tmp_path / "metrics.jsonl"
    path.symlink_to(FULL)
    with MetricsFile(path) as metrics, pytest.raises(RecordLost, match=r"metrics\.jsonl.*space"):
        metrics.append(iteration(1))


def test_a_file_that_cannot_be_opened_stops_the_run(tmp_path: Path) -> None:
    """The run does not begin without the place for its records."""
    with pytest.raises(RecordLost, match="opening"):
        MetricsFile(tmp_path)


def test_a_figure_that_is_not_finite_is_written_as_null(tmp_path: Path) -> None:
    """Every line is JSON that any reader takes."""
    with MetricsFile(tmp_path / "metrics.jsonl") as metrics:
        metrics.append(IterationReport(iteration=1, env_steps=1, seconds=1.0, return_mean=math.nan))
    assert b"NaN" not in metrics.path.read_bytes()
    assert read_metrics(metrics.path)[0].return_mean is None


def test_an_episode_reads_back_as_it_was_written(tmp_path: Path) -> None:
    """Sampled episodes keep every record, in order, of the same types."""
    path = RecordsDir(tmp_path / "records").write(7, episode())
    assert path.name == "000007.jsonl"
    assert read_episode(path) == episode()


def test_a_run_keeps_the_latest_episodes_and_no_more(tmp_path: Path) -> None:
    """The number of files is bounded, and an episode that is sampled again replaces itself."""
    records = RecordsDir(tmp_path, keep=3)
    for number in (1, 2, 3, 4, 5, 5):
        records.write(number, episode())
    assert [path.stem for path in episode_files(tmp_path)] == ["000003", "000004", "000005"]
    assert len(list(tmp_path.iterdir())) == 3


def test_an_episode_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    """Records are durable: no place for them is an error."""
    (tmp_path / "records").write_text("in the way")
    with pytest.raises(RecordLost, match="records"):
        RecordsDir(tmp_path / "records").write(1, episode())


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    """A damaged episode says where."""
    path = tmp_path / "000001.jsonl"
    path.write_text('{"kind": "unheard_of"}\n')
    with pytest.raises(RecordLost, match="line 1"):
        read_episode(path)


NESTED = st.recursive(
    st.floats() | st.integers(-9, 9) | st.text() | st.none(),
    lambda inner: st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
    max_leaves=8,
)


@QUICK
@given(st.dictionaries(st.text("abc", min_size=1), NESTED, max_size=5))
def test_flatten_keeps_every_finite_number_and_nothing_else(nested: dict[str, object]) -> None:
    """Curves are made of finite numbers, each under its own path."""
    flat = flatten(nested)
    assert all(math.isfinite(value) for value in flat.values())
    for name, value in flat.items():
        found: object = nested
        for key in name.split("/"):
            assert isinstance(found, dict)
            found = found[key]
        assert found == value
    assert len(flat) == count(nested, lambda v: isinstance(v, (int, float)) and math.isfinite(v))


def count(nested: object, holds: Callable[[object], bool]) -> int:
    if isinstance(nested, dict):
        return sum(count(value, holds) for value in nested.values())
    return int(holds(nested))


def test_the_curves_are_named_by_what_is_read_together() -> None:
    """Team, agents, evaluation, policies and the run itself have a group each."""
    curves = scalars(iteration(2, EVALUATION))
    assert {name.partition("/")[0] for name in curves} == {"team", "agent", "eval", "policy", "run"}
    assert curves["team/return"] == -25.0
    assert curves["agent/triage/term/payoff"] == 4.0
    assert curves["agent/triage/tool/hand_over()"] == 0.75
    assert curves["eval/return_low"] == 50.1
    assert curves["eval/baseline/random"] == -45.69
    assert curves["policy/triage/lr"] == 0.001
    assert curves["run/timer/learn"] == 0.9
    assert not any(name.startswith("eval") for name in scalars(iteration(2)))


def test_a_report_survives_json() -> None:
    """A line of metrics.jsonl reads back as the report it was."""
    report = iteration(3, EVALUATION)
    assert ITERATION.validate_json(ITERATION.dump_json(report)) == report


def test_the_figures_of_the_team_come_from_those_who_learn() -> None:
    """Entropy is a mean, divergence the largest; a team of which nobody learns has neither."""
    report = iteration(2)
    assert mean_entropy(report) == pytest.approx(0.8)
    assert largest_kl(report) == pytest.approx(0.016)
    still = IterationReport(iteration=1, env_steps=1, seconds=1.0)
    assert mean_entropy(still) is None
    assert largest_kl(still) is None
