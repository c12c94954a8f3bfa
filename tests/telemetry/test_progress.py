import logging
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.figures import duration, plain_line
from telemetry.progress import LiveProgress, PlainProgress, RunConsole, Until, closing_table, progress
from telemetry.scalars import IterationReport, RunResult
from tests.telemetry.samples import EVALUATION, QUICK, iteration, result

UNTIL = Until(iterations=200, seconds=600.0)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def terminal(**environ: str) -> RunConsole:
    settings = {"TERM": "xterm-256color", **environ}
    return RunConsole(file=StringIO(), force_terminal=True, width=110, _environ=settings)


def written(console: RunConsole) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def run_through(console: RunConsole, *reports: IterationReport) -> str:
    display = progress(console, UNTIL)
    display.start()
    for report in reports:
        display.show(report)
    display.close()
    return written(console)


def test_a_pipe_gets_one_aligned_line_per_iteration() -> None:
    """Logs hold plain lines whose columns stand under each other, with no control characters."""
    console = RunConsole(file=StringIO(), width=80)
    assert isinstance(progress(console, UNTIL), PlainProgress)
    lines = run_through(console, iteration(9), iteration(10, EVALUATION)).splitlines()
    assert len(lines) == 2
    assert [m.start() for m in re.finditer(r"\|", lines[0])] == [m.start() for m in re.finditer(r"\|", lines[1])][:6]
    assert "return     45.00" in lines[0]
    assert "eval 51.20 (0.962)" in lines[1]
    assert "\x1b" not in "".join(lines)


@QUICK
@given(
    st.integers(1, 9999), st.integers(0, 999_999_999), st.none() | st.floats(-99999, 99999), st.floats(0.001, 360_000)
)
def test_a_line_stays_below_140_characters(k: int, steps: int, value: float | None, seconds: float) -> None:
    """Long runs and missing figures do not wrap."""
    report = replace(iteration(10, EVALUATION), iteration=k, env_steps=steps, return_mean=value, seconds=seconds)
    line = plain_line(report, 9999, seconds)
    assert len(line) < 140
    assert line.isascii()


def test_missing_rewards_and_figures_are_shown_as_missing() -> None:
    """A figure that was not measured is a dash, not 0."""
    line = plain_line(IterationReport(iteration=1, env_steps=10, seconds=1.0, missing_rewards=3), None, None)
    assert "missing 3" in line
    assert re.search(r"return +- ", line)


def test_a_terminal_gets_a_bar_with_the_figures_that_matter() -> None:
    """Return, entropy, KL, speed and time left; the last evaluation stays beside the baselines."""
    console = terminal()
    assert isinstance(progress(console, UNTIL), LiveProgress)
    text = COLOUR.sub("", run_through(console, iteration(5, EVALUATION), iteration(6)))
    last = text[text.rindex("Iteration 6/200") :]
    for part in ("8m05s left", "return 15.00", "entropy 0.267", "KL 0.0160", "steps/s 12,346", "triage", "resolver"):
        assert part in last
    assert "Held out: 51.20 (score 0.962) | optimal 54.98, expert 31.40, random -45.69" in last


def test_no_color_is_respected() -> None:
    """With NO_COLOR set nothing is coloured; without it the bar is."""
    coloured = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|38|9[0-7])[0-9;]*m")
    assert not coloured.search(run_through(terminal(NO_COLOR="1"), iteration(100)))
    assert coloured.search(run_through(terminal(), iteration(100)))


def test_a_dumb_terminal_gets_lines() -> None:
    """What cannot move its cursor is not drawn on."""
    assert isinstance(progress(terminal(TERM="dumb"), UNTIL), PlainProgress)


class Gone(StringIO):
    """A reader that went away."""

    error: OSError = BrokenPipeError(32, "Broken pipe")

    def write(self, s: str, /) -> int:
        raise self.error


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_display_that_breaks_does_not_stop_the_run(is_terminal: bool, caplog: pytest.LogCaptureFixture) -> None:
    """It is said once; training goes on unseen."""
    console = RunConsole(file=Gone(), force_terminal=is_terminal, _environ={"TERM": "xterm"})
    display = progress(console, UNTIL)
    with caplog.at_level(logging.WARNING):
        display.start()
        for k in (1, 2, 3):
            display.show(iteration(k))
        display.close()
        console.print("closing")
    assert len(caplog.records) == 1


def test_a_full_disk_under_the_log_does_not_stop_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """Any other failure of the display is said once, too."""
    file = Gone()
    file.error = OSError(28, "No space left on device")
    display = progress(RunConsole(file=file), UNTIL)
    with caplog.at_level(logging.WARNING):
        for k in (1, 2, 3):
            display.show(iteration(k))
    (said,) = caplog.records
    assert "carries on" in said.getMessage()


def test_the_closing_table_says_how_it_ended_and_where_everything_lies() -> None:
    """Score, return with its interval, success, every baseline and every path, whole."""
    console = RunConsole(file=StringIO(), width=80)
    console.print(closing_table(result(Path("runs/a")), {"report": Path("runs/a") / ("x" * 70) / "report.html"}))
    text = re.sub(r"[\s│]", "", written(console))
    for part in ("done:seed3", "0.962", "51.20 95% [50.10, 52.30]", "91.0%", "baseline optimal", "54.98", "-45.69"):
        assert part.replace(" ", "") in text
    assert f"runs/a/{'x' * 70}/report.html" in text


def test_a_run_that_was_never_evaluated_has_a_closing_table_too() -> None:
    """An interrupted run says so, with dashes where nothing was measured."""
    console = RunConsole(file=StringIO(), width=80)
    console.print(closing_table(RunResult(status="interrupted", run_dir="runs/a"), {}))
    assert "interrupted" in written(console)
    assert "none" in written(console)


@QUICK
@given(st.integers(1, 500), st.floats(0.1, 1e5))
def test_time_left_ends_with_the_nearest_limit(k: int, seconds: float) -> None:
    """Of several limits the one that comes first counts; at a limit nothing is left."""
    report = replace(iteration(1), iteration=k, seconds=seconds)
    left = UNTIL.left(report)
    alone = [Until(iterations=200).left(report), Until(seconds=600.0).left(report)]
    assert left == pytest.approx(min(t for t in alone if t is not None))
    assert 0 <= UNTIL.done(report) <= 1
    assert Until().left(report) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(9.4, "9s"), (250, "4m10s"), (3725, "1h02m"), (None, "-"), (float("inf"), "-"), (-1, "0s")]
)
def test_a_duration_is_short(seconds: float | None, text: str) -> None:
    """Durations fit a column."""
    assert duration(seconds) == text
