import logging
import re
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util.tensor_util import make_ndarray

from telemetry.curves import ema
from telemetry.tensorboard import TensorBoardLog
from tests.telemetry.samples import EVALUATION, episode, iteration

FULL = Path("/dev/full")


def read(directory: Path) -> Any:
    events: Any = EventAccumulator(str(directory), size_guidance={"tensors": 0, "scalars": 0})
    return events.Reload()


def words(event: Any) -> str:
    return event.tensor_proto.string_val[0].decode()


def shown(directory: Path, *iterations: int) -> Any:
    log = TensorBoardLog(directory, baselines={"optimal": 54.98})
    for k in iterations:
        log.show(iteration(k, EVALUATION if k == 2 else None))
    log.close()
    return read(directory)


def test_curves_read_back_with_their_values_over_env_steps(tmp_path: Path) -> None:
    """TensorBoard's own reader finds each agent's curves, the evaluation and the baselines, point for point."""
    events = shown(tmp_path, 1, 2, 3)
    returns = events.Scalars("team/return")
    assert [(e.step, e.value) for e in returns] == [(12000, -35.0), (24000, -25.0), (36000, -15.0)]
    assert [e.step for e in events.Scalars("eval/baseline/optimal")] == [24000]
    assert events.Scalars("eval/return")[0].value == pytest.approx(51.2)
    assert events.Scalars("agent/resolver/explained_variance")[0].value == pytest.approx(0.4)
    assert events.Scalars("team/return_smoothed")[0].value == pytest.approx(-35.0)
    assert -35.0 < events.Scalars("team/return_smoothed")[2].value < -15.0
    assert [(e.step, e.value) for e in events.Scalars("team/baseline/optimal")] == [
        (12000 * k, pytest.approx(54.98)) for k in (1, 2, 3)
    ]


def test_each_agents_return_and_terms_are_there_raw_and_smoothed(tmp_path: Path) -> None:
    """Every agent has a curve a term, as it is and as a moving average that starts where the curve does."""
    events = shown(tmp_path, 1, 2, 3)
    for agent in ("triage", "resolver"):
        for raw, smoothed in (("return", "return_smoothed"), ("term/payoff", "term_smoothed/payoff")):
            points = [[e.value for e in events.Scalars(f"agent/{agent}/{tag}")] for tag in (raw, smoothed)]
            assert points[1] == pytest.approx(ema(points[0]))
        assert len(events.Scalars(f"agent/{agent}/term_smoothed/tool_cost")) == 3


def test_a_resumed_run_goes_on_from_its_averages(tmp_path: Path) -> None:
    """The smoothed curve of 2 iterations and 1 more is that of 3."""
    whole = shown(tmp_path / "whole", 1, 2, 3)
    log = TensorBoardLog(tmp_path / "half", resumed_at=24000, past=[iteration(1), iteration(2)])
    log.show(iteration(3))
    log.close()
    for tag in ("team/return_smoothed", "agent/triage/term_smoothed/payoff"):
        assert read(tmp_path / "half").Scalars(tag)[0].value == pytest.approx(whole.Scalars(tag)[2].value)


def test_what_is_compared_is_drawn_in_one_chart(tmp_path: Path) -> None:
    """The panel's layout puts the evaluation beside the baselines, and has a part for each agent."""
    events = shown(tmp_path, 1)
    written = events.Tensors("custom_scalars__config__")
    layout: Any = vars(layout_pb2)["Layout"].FromString(written[0].tensor_proto.string_val[0])
    assert len(written) == 1
    assert [category.title for category in layout.category] == ["Team", "triage", "resolver"]
    charts = {chart.title: list(chart.multiline.tag) for chart in layout.category[0].chart}
    assert charts["Evaluation beside the baselines"] == ["^eval/return$", "^eval/baseline/"]
    tags = events.Tags()["scalars"]
    for category in layout.category:
        for chart in category.chart:
            if "Evaluation" not in chart.title:
                assert all(any(re.search(tag, name) for name in tags) for tag in chart.multiline.tag), chart.title


def test_episodes_and_distributions_are_shown(tmp_path: Path) -> None:
    """A sampled episode can be read as text, and rewards and actions as histograms."""
    log = TensorBoardLog(tmp_path)
    log.show(iteration(1))
    log.episode("000007", episode(answer="<script>"))
    log.histograms({"agent/triage/rewards": [0.0, 1.0, 1.0], "agent/resolver/rewards": []})
    log.actions("triage", {"hand_over": 3, "ask": 1})
    log.actions("triage", {"wait": 4})
    log.actions("resolver", {})
    log.close()
    events = read(tmp_path)
    text = words(events.Tensors("episode/000007")[0])
    assert 'triage, turn 0: query_orders(region="EU")' in text
    assert all(line.startswith("    ") for line in text.splitlines())
    assert events.Tensors("agent/triage/rewards")[0].step == 12000
    assert words(events.Tensors("agent/triage/actions")[-1]).split() == ["0:", "hand_over", "1:", "ask", "2:", "wait"]
    first, second = (make_ndarray(e.tensor_proto) for e in events.Tensors("agent/triage/action"))
    assert [first[:, 2].sum(), second[:, 2].sum()] == [1000, 1000]
    assert first[first[:, 0] <= 0.0][:, 2].sum() == 750
    assert "agent/resolver/action" not in events.Tags()["tensors"]
    assert "agent/resolver/rewards" not in events.Tags()["tensors"]


def test_the_settings_stand_beside_the_final_score(tmp_path: Path) -> None:
    """Runs can be ranked by score in TensorBoard's table of settings."""
    log = TensorBoardLog(tmp_path)
    log.show(iteration(1))
    log.close({"ppo/lr": 0.001, "team": "supply_chain", "center": True}, {"final/score": 0.96, "final/return": None})
    events = read(tmp_path)
    assert events.Scalars("final/score")[0].value == pytest.approx(0.96)
    assert "final/return" not in events.Tags()["scalars"]
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    data: Any = vars(plugin_data_pb2)["HParamsPluginData"].FromString(content)
    assert data.session_start_info.hparams["ppo/lr"].number_value == 0.001
    assert data.session_start_info.hparams["team"].string_value == "supply_chain"


@pytest.mark.parametrize("before", [False, True], ids=["none before", "one in the last iteration"])
def test_the_evaluation_at_the_end_is_on_the_curves(tmp_path: Path, before: bool) -> None:
    """A run too short to be evaluated on its way has a point all the same; no step has two."""
    log = TensorBoardLog(tmp_path)
    log.show(iteration(1, EVALUATION if before else None))
    log.evaluated(EVALUATION)
    log.close()
    assert [(e.step, e.value) for e in read(tmp_path).Scalars("eval/return")] == [(12000, pytest.approx(51.2))]


def test_a_resumed_run_hides_the_points_after_its_checkpoint(tmp_path: Path) -> None:
    """Curves do not run back over themselves after a resume."""
    shown(tmp_path, 1, 2, 3)
    log = TensorBoardLog(tmp_path, resumed_at=iteration(2).env_steps)
    log.show(iteration(3))
    log.close()
    assert [e.step for e in read(tmp_path).Scalars("team/return")] == [12000, 24000, 36000]


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_full_disk_breaks_the_panel_and_not_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is said once, and every later call is quiet."""
    log = TensorBoardLog(tmp_path, open_file=lambda _: FULL.open("wb"))
    with caplog.at_level(logging.ERROR):
        for k in (1, 2, 3):
            log.show(iteration(k))
        log.episode("000001", episode())
        log.close(final={"final/score": 1.0})
    assert log.view.broken
    assert len(caplog.records) <= 1


class Fails:
    """A file on a disk that fills up after some writes."""

    def __init__(self, good: int) -> None:
        self.good, self.closed = good, False

    def write(self, data: bytes) -> int:
        self.good -= 1
        if self.good < 0:
            raise OSError(28, "No space left on device")
        return len(data)

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("good", [0, 1, 3, 5])
def test_a_disk_that_fills_up_is_reported_once(tmp_path: Path, good: int, caplog: pytest.LogCaptureFixture) -> None:
    """Whenever the writer begins to fail, the run carries on, the log says so once, and the file is closed."""
    file: Any = Fails(good)
    with caplog.at_level(logging.ERROR):
        log = TensorBoardLog(tmp_path, open_file=lambda _: file)
        for k in (1, 2, 3):
            log.show(iteration(k))
        log.close(final={"final/score": 1.0})
    (said,) = caplog.records
    assert "TensorBoard" in said.getMessage()
    assert "carries on" in said.getMessage()
    assert log.view.broken
    assert file.closed or good == 0


def test_a_directory_that_cannot_be_made_does_not_stop_the_run(tmp_path: Path) -> None:
    """Nor does a panel that never opened."""
    (tmp_path / "tensorboard").write_text("in the way")
    log = TensorBoardLog(tmp_path / "tensorboard")
    log.show(iteration(1))
    log.close()
    assert log.view.broken
