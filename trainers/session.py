"""A run from its accepted experiment to its result: prepared, trained, evaluated, exported, reported."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from assembly.build import Build
from runtime.records import AnyRecord
from telemetry.durable import replace_file
from telemetry.metrics.port import MetricsPort
from telemetry.metrics_file import MetricsFile
from telemetry.progress import RunConsole, Until, closing_table, progress
from telemetry.records_file import RecordsDir, number_of
from telemetry.report import REPORT_FILE, write_report
from telemetry.run_dir import METRICS, RECORDS, RESULT_FILE
from telemetry.scalars import RESULT, RunResult
from telemetry.views import View
from trainers.checkpoints import Checkpoints, TrainerState
from trainers.evaluate import Purse, evaluation, try_out
from trainers.exporting import export, exported, write_lineage
from trainers.interrupt import Interrupt
from trainers.listeners import EpisodeSamples, Instruments, MetricsLines, OnScreen, Panel
from trainers.loop import Ended, Loop
from trainers.missing import MissingRewards
from trainers.panel import panel_of, settings
from trainers.prepare import Prepared, prepare
from trainers.ray_cluster import ray_running
from trainers.regressions import played_again, told
from trainers.run_directory import EXPERIMENT
from trainers.swap import swaps
from trainers.vetting import AUDIT_FILE, already_vetted, audited, vetted

TARGETS = "targets"
"""In the run directory: what Prometheus scrapes (``file_sd``)."""
GOLDEN_EPISODES = 4
"""Held-out episodes whose decisions are remembered with the version."""
SWAP_EPISODES = 1000
"""Held-out episodes for each exchange of roles."""
EXITS = {
    "done": 0, "limit": 0, "gate": 4, "audit": 5, "missing_rewards": 5, "collapsed": 6, "failed": 6, "interrupted": 130
}  # fmt: skip
"""What the command returns for each status."""


def check(build: Build, directory: Path) -> int:
    """All but the training: play at random, measure, build, and say what was found, also in the directory."""
    console = RunConsole()
    _seed(build.experiment.seed)
    with _port(build, directory, console) as port:
        try:
            prepared = prepare(build, directory)
        except MissingRewards as error:
            audited(build, directory, None, console)
            _say(console, f"missing_rewards: {error}")
            return EXITS["missing_rewards"]
        _announce(console, build, prepared)
        ended = _vet(build, directory, prepared, port, console)
    if ended is not None:
        _say(console, f"{ended.status}: {ended.reason}")
        return EXITS[ended.status]
    go_on = f"; train with: {resume_with(directory)}" if (directory / EXPERIMENT).is_file() else ""
    _say(console, f"ready to train{go_on}")
    return 0


def _port(build: Build, directory: Path, console: RunConsole) -> MetricsPort:
    """The run's metrics port: where it listens is said, and stands in the run directory for Prometheus."""
    settings = build.experiment.telemetry
    port = MetricsPort(settings.port, "trainer", directory / TARGETS, settings.otlp)
    _say(console, f"metrics: {port.address}")
    return port


def _vet(build: Build, directory: Path, prepared: Prepared, port: MetricsPort, console: RunConsole) -> Ended | None:
    """Audit and gates; how the run ends, if it must."""
    report, gates = vetted(build, directory, prepared, port, console)
    if not report.ok:
        named = dict.fromkeys(f.check for f in report.errors)
        reason = f"{', '.join(named)}: see above, and {AUDIT_FILE} in the run directory"
        return Ended("audit", reason, TrainerState(cost_usd=prepared.cost_usd))
    if not gates.ok:
        return Ended("gate", gates.reason, TrainerState(cost_usd=prepared.cost_usd))
    return None


def train(build: Build, directory: Path, interrupted: Interrupt) -> int:
    """Train in the run directory, new or resumed, and return the command's exit code."""
    console = RunConsole()
    torch.set_num_threads(1)
    _seed(build.experiment.seed)
    if _finished(directory, console):
        _say(console, f"{directory}: nothing left to do, the run is finished")
        return 0
    checkpoints = Checkpoints(directory / "checkpoints", build.experiment.checkpoints.keep)
    _say(console, f"run directory: {directory}")
    with _port(build, directory, console) as port:
        try:
            prepared = prepare(build, directory)
        except MissingRewards as error:
            audited(build, directory, None, console)
            return _stopped(build, directory, Ended("missing_rewards", str(error), TrainerState()), console)
        _announce(console, build, prepared)
        ended = None if already_vetted(directory) else _vet(build, directory, prepared, port, console)
        if ended is not None:
            return _stopped(build, directory, ended, console)
        with ray_running(build.experiment.resources):
            return _train(build, directory, prepared, checkpoints, interrupted, (console, port))


def _finished(directory: Path, console: RunConsole) -> bool:
    """Whether an earlier start of the run did all that the file asks for; a result that cannot be read is none."""
    path = directory / RESULT_FILE
    try:
        return path.is_file() and RESULT.validate_json(path.read_bytes()).status == "done"
    except ValueError as error:
        _say(console, f"{path} is no result ({str(error).splitlines()[0]}): it will be written anew")
        return False


def _stopped(build: Build, directory: Path, ended: Ended, console: RunConsole) -> int:
    """End a run that never trained."""
    _say(console, f"{ended.status}: {ended.reason}")
    _write(directory, _plain(build, directory, {}, ended))
    _reported(directory)
    return EXITS[ended.status]


def _train(
    build: Build,
    directory: Path,
    prepared: Prepared,
    checkpoints: Checkpoints,
    interrupted: Interrupt,
    outputs: tuple[RunConsole, MetricsPort],
) -> int:
    console, port = outputs
    resumed = checkpoints.last()
    begun = (directory / METRICS).exists()
    until = Until(
        iterations=build.experiment.stop.iterations,
        seconds=60 * build.experiment.stop.minutes if build.experiment.stop.minutes else None,
    )
    screen = progress(console, until)
    file = MetricsFile(directory / METRICS)
    lines = MetricsLines(file)
    state = resumed.state if resumed else TrainerState()
    panel = panel_of(build, directory, prepared, state if begun else None)
    samples = EpisodeSamples(RecordsDir(directory / RECORDS))
    listeners = [lines, samples, *([panel] if panel else []), OnScreen(screen), Instruments(port.meters)]
    loop = Loop(build, prepared, checkpoints, listeners, interrupted, partial(_say, console))
    interrupted.wait_for_checkpoint()
    try:
        if resumed:
            loop.resume(resumed)
            _say(console, f"resumed at iteration {state.iteration}")
        lines.back_to(state)
        screen.start()
        try:
            ended = loop.run()
        finally:
            screen.close()
        return _close(build, directory, prepared, loop, ended, (console, panel))
    finally:
        loop.close()
        file.close()


def _say(console: RunConsole, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _close(
    build: Build, directory: Path, prepared: Prepared, loop: Loop, ended: Ended, shown: tuple[RunConsole, Panel | None]
) -> int:
    console, panel = shown
    kept = loop.save() if ended.status in ("done", "limit", "interrupted") else None
    result = _plain(build, directory, prepared.compared.returns, ended)
    if ended.status in ("done", "limit"):
        result = _finish(build, directory, prepared, loop, result)
        if loop.interrupted():
            ended = Ended("interrupted", "stopped on request while the result was evaluated", ended.state)
            result = _plain(build, directory, prepared.compared.returns, ended)
    _say(console, f"{ended.status}: {ended.reason}")
    if ended.status == "interrupted" and kept:
        _say(console, f"checkpoint saved: {kept.path}\nresume with: {resume_with(directory)}")
    _write(directory, result)
    if panel is not None:
        panel.finish(settings(build), result, directory / RECORDS)
    report = _reported(directory)
    if ended.status in ("done", "limit"):
        places = {"version": directory / "version", "checkpoints": directory / "checkpoints"}
        console.print(closing_table(result, {"report": report, **places} if report.is_file() else places))
    return EXITS[ended.status]


def _reported(directory: Path) -> Path:
    """Where the run's page lies. It is a view: how the run ended stands without it."""
    View("the report")(lambda: write_report(directory))
    return directory / REPORT_FILE


def resume_with(directory: Path) -> str:
    """The command that goes on with a run."""
    return f"python -m trainers.run --resume {shlex.quote(str(directory))}"


def _write(directory: Path, result: RunResult) -> None:
    replace_file(directory / RESULT_FILE, RESULT.dump_json(result, indent=1).decode())


def _finish(build: Build, directory: Path, prepared: Prepared, loop: Loop, plain: RunResult) -> RunResult:
    """Evaluate on every held-out scenario, exchange roles, export; what limits.usd leaves is not gone over."""
    seats, count = loop.engine.seats(), build.held_out or 0
    purse = Purse(build.experiment.limits.usd, loop.state.cost_usd, loop.interrupted)
    tried = try_out(build, seats, range(count), purse.empty)
    purse.pay(tried)
    keep = RecordsDir(directory / RECORDS)
    for place, records in enumerate(tried.sampled):
        keep.write(number_of(plain.iterations, held_out=place), cast("list[AnyRecord]", list(records)))
    report = evaluation(tried, prepared.compared) if tried.episodes else loop.evaluated
    lost: Mapping[str, float | None] = {}
    if build.experiment.evaluation.role_swap and build.team is not None:
        sizes = {n: s.spec.outputs for n, s in loop.engine.policies.items()}
        exchanged = swaps(build, seats, sizes, range(min(SWAP_EPISODES, count)), purse)
        lost = {pair: float(np.mean(t.returns)) if t.returns else None for pair, t in exchanged.items()}
    regressed = played_again(build, seats, purse)
    golden = try_out(build, seats, range(min(GOLDEN_EPISODES, count))).sampled
    version = export(build, exported(prepared, loop.engine, golden), directory / "version")
    write_lineage(directory / "version", build, loop.state, directory)
    score = report.score if report else None
    return replace(plain, version=version, eval=report, score=score, role_swaps=lost, regressions=regressed)


def _plain(build: Build, directory: Path, baselines: Mapping[str, float], ended: Ended) -> RunResult:
    return RunResult(
        status=ended.status,
        reason=ended.reason,
        run_dir=str(directory),
        seed=build.experiment.seed,
        iterations=ended.state.iteration,
        env_steps=ended.state.env_steps,
        seconds=ended.state.seconds,
        baselines=dict(baselines),
    )


def _announce(console: RunConsole, build: Build, prepared: Prepared) -> None:
    """Say what training starts from, and what it will spend at most."""
    if build.recorded is not None:
        _say(console, build.recorded.told())
    if kept_out := told(build):
        _say(console, kept_out)
    for name, value in prepared.compared.returns.items():
        _say(console, f"baseline {name}: {value:.2f}")
    if prepared.random_return is not None:
        _say(
            console,
            f"random play: {prepared.random_return:.2f} an episode of {prepared.steps_per_episode:.1f} decisions",
        )
    limit = build.experiment.limits.usd
    if limit is not None:
        _say(console, f"estimate: {_estimate(build, prepared)} US dollars for tools; limit {limit:,.2f}")


def _estimate(build: Build, prepared: Prepared) -> str:
    """What the run will be billed at the rate of random play, in words."""
    experiment, iterations = build.experiment, build.experiment.stop.iterations
    episodes = experiment.ppo.train_batch_size / max(1.0, prepared.steps_per_episode)
    episodes += min(experiment.evaluation.episodes, build.held_out or 0) / experiment.evaluation.every
    each, before = episodes * prepared.usd_per_episode, f"{prepared.cost_usd:,.2f} so far"
    if iterations is None:
        return f"{before}, and {each:,.2f} an iteration"
    closing = (build.held_out or 0) * prepared.usd_per_episode
    return f"{prepared.cost_usd + iterations * each + closing:,.2f} ({before})"


def _seed(seed: int) -> None:
    import random

    random.seed(seed)
    np.random.seed(seed % 2**32)
    chance: Any = torch
    chance.manual_seed(seed)
