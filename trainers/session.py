"""A run from its accepted experiment to its result: prepared, trained, evaluated, exported, reported."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from assembly.build import Build
from telemetry.metrics_file import MetricsFile
from telemetry.progress import Until, closing_table, progress
from telemetry.records_file import RecordsDir
from telemetry.report import write_report
from telemetry.run_dir import METRICS, RECORDS, RESULT_FILE
from telemetry.scalars import RESULT, RunResult
from telemetry.tensorboard import TensorBoardLog
from trainers.checkpoints import Checkpoints, NoCheckpoint
from trainers.evaluate import evaluation, try_out
from trainers.exporting import export, write_lineage
from trainers.listeners import EpisodeSamples, MetricsLines, OnScreen, Panel
from trainers.loop import Ended, Loop
from trainers.prepare import Prepared, prepare
from trainers.ray_cluster import ray_running
from trainers.swap import swaps

SWAP_EPISODES = 1000
"""Held-out episodes for each exchange of roles."""
EXITS = {"done": 0, "limit": 0, "interrupted": 130, "collapsed": 6, "failed": 6, "missing_rewards": 5}
"""What the command returns for each status."""


def check(build: Build) -> int:
    """All but the training: play at random, measure, build, and say what was found."""
    from tempfile import TemporaryDirectory

    console = Console()
    with TemporaryDirectory() as scratch:
        prepared = prepare(build, Path(scratch))
    _announce(console, build, prepared)
    console.print("ready to train")
    return 0


def train(build: Build, directory: Path, interrupted: Callable[[], bool]) -> int:
    """Train in the run directory, new or resumed, and return the command's exit code."""
    console = Console()
    torch.set_num_threads(1)
    _seed(build.experiment.seed)
    before = _result(directory)
    if before is not None and before.status == "done":
        console.print(f"{directory}: nothing left to do, the run is finished (score {before.score})")
        return 0
    console.print(f"run directory: {directory}", highlight=False)
    prepared = prepare(build, directory)
    _announce(console, build, prepared)
    checkpoints = Checkpoints(directory / "checkpoints", build.experiment.checkpoints.keep)
    with ray_running(build.experiment.resources):
        return _train(build, directory, prepared, checkpoints, interrupted, console)


def _train(
    build: Build,
    directory: Path,
    prepared: Prepared,
    checkpoints: Checkpoints,
    interrupted: Callable[[], bool],
    console: Console,
) -> int:
    resumed = _last(checkpoints)
    until = Until(
        iterations=build.experiment.stop.iterations,
        seconds=60 * build.experiment.stop.minutes if build.experiment.stop.minutes else None,
    )
    screen = progress(console, until)
    lines = MetricsLines(MetricsFile(directory / METRICS))
    panel = _panel(build, directory, resumed.state.env_steps if resumed else None)
    samples = EpisodeSamples(RecordsDir(directory / RECORDS))
    listeners = [lines, samples, *([panel] if panel else []), OnScreen(screen)]
    loop = Loop(build, prepared, checkpoints, listeners, interrupted, lambda text: console.print(text, highlight=False))
    try:
        if resumed:
            loop.resume(resumed)
            lines.back_to(resumed.state)
            console.print(f"resumed at iteration {resumed.state.iteration}", highlight=False)
        screen.start()
        try:
            ended = loop.run()
        finally:
            screen.close()
        return _close(build, directory, prepared, loop, ended, (console, panel))
    finally:
        loop.close()


def _panel(build: Build, directory: Path, resumed_at: int | None) -> Panel | None:
    if not build.experiment.telemetry.tensorboard:
        return None
    return Panel(TensorBoardLog(directory / "tensorboard", resumed_at=resumed_at))


def _close(
    build: Build, directory: Path, prepared: Prepared, loop: Loop, ended: Ended, shown: tuple[Console, Panel | None]
) -> int:
    console, panel = shown
    finished = ended.status in ("done", "limit")
    if ended.status in ("done", "limit", "interrupted"):
        kept = loop.save()
        if ended.status == "interrupted":
            console.print(
                f"checkpoint saved: {kept.path}\nresume with: python -m trainers.run --resume {directory}",
                highlight=False,
            )
    console.print(f"{ended.status}: {ended.reason}", highlight=False)
    result = _finish(build, directory, prepared, loop, ended) if finished else _plain(build, directory, prepared, ended)
    (directory / RESULT_FILE).write_bytes(RESULT.dump_json(result, indent=1))
    if panel is not None:
        panel.finish(_settings(build), result.score)
    report = write_report(directory)
    if finished:
        places = {"report": report, "version": directory / "version", "checkpoints": directory / "checkpoints"}
        console.print(closing_table(result, places))
    return EXITS[ended.status]


def _finish(build: Build, directory: Path, prepared: Prepared, loop: Loop, ended: Ended) -> RunResult:
    """Evaluate on every held-out scenario, exchange roles, export."""
    seats = loop.engine.seats()
    count = build.held_out or 0
    tried = try_out(build, seats, range(count))
    keep = RecordsDir(directory / "records")
    for place, records in enumerate(tried.sampled):
        keep.write(ended.state.iteration * 1000 + 900 + place, records)
    report = evaluation(tried, prepared.compared)
    lost: Mapping[str, float | None] = {}
    if build.experiment.evaluation.role_swap and build.team is not None:
        sizes = {n: s.spec.outputs for n, s in loop.engine.policies.items()}
        exchanged = swaps(build, seats, sizes, range(min(SWAP_EPISODES, count)))
        lost = {pair: float(np.mean(t.returns)) if t.returns else None for pair, t in exchanged.items()}
    version = export(build, prepared, loop.engine, directory / "version")
    write_lineage(directory / "version", build, ended.state, directory)
    plain = _plain(build, directory, prepared, ended)
    return replace(plain, version=version, eval=report, score=report.score, role_swaps=lost)


def _plain(build: Build, directory: Path, prepared: Prepared, ended: Ended) -> RunResult:
    return RunResult(
        status=ended.status,
        reason=ended.reason,
        run_dir=str(directory),
        seed=build.experiment.seed,
        iterations=ended.state.iteration,
        env_steps=ended.state.env_steps,
        seconds=ended.state.seconds,
        baselines=dict(prepared.compared.returns),
    )


def _announce(console: Console, build: Build, prepared: Prepared) -> None:
    """Say what training starts from, and what it will spend at most."""
    shown = ", ".join(f"{n} {v:.2f}" for n, v in prepared.compared.returns.items())
    console.print(f"baselines: {shown}", highlight=False)
    if prepared.random_return is not None:
        console.print(
            f"random play: {prepared.random_return:.2f} an episode of {prepared.steps_per_episode:.1f} decisions",
            highlight=False,
        )
    limits, ppo, stop = build.experiment.limits, build.experiment.ppo, build.experiment.stop
    if limits.usd is not None and stop.iterations is not None:
        episodes = stop.iterations * ppo.train_batch_size / max(1.0, prepared.steps_per_episode)
        console.print(
            f"estimate: {episodes * prepared.usd_per_episode:,.2f} US dollars for tools over the whole run, "
            f"at the rate of random play; limit {limits.usd:,.2f}",
            highlight=False,
        )


def _settings(build: Build) -> dict[str, float | str | bool]:
    ppo = build.experiment.ppo.model_dump(mode="json")
    return {k: v if isinstance(v, float | int | str | bool) else str(v) for k, v in ppo.items() if v is not None}


def _result(directory: Path) -> RunResult | None:
    path = directory / RESULT_FILE
    return RESULT.validate_json(path.read_bytes()) if path.is_file() else None


def _last(checkpoints: Checkpoints):
    try:
        return checkpoints.last()
    except NoCheckpoint:
        return None


def _seed(seed: int) -> None:
    import random

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
