"""What it costs to be looked at: training, and a live chain, with everything shown and with nothing shown, in pairs."""

import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any
from urllib.request import urlopen

from bench.outcome import Claim, Outcome
from bench.rows import Options
from bench.runs import ROOT
from runtime.types import Scenario
from telemetry.watched import Watched

PAIRS = 15
"""Iterations with, and as many without, in turns."""
SIZES = ("ppo.train_batch_size=4000", "resources.env_runners=0", "resources.envs_per_runner=32")
"""A third of the shipped batch: what is shown is shown once an iteration, so that it weighs more here."""
LAPS, SESSIONS = 12, 15
"""Laps of each live chain, in turns, and sessions of a lap, one after the other."""
SCRAPE_S = 1.0
"""Pause between two scrapes (s), as eager as anybody's Prometheus."""
TRAINING, CHAIN = 1.03, 1.05
"""At most so many times what it takes when nobody looks."""


def looking(options: Options) -> Outcome:
    """Both."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        pairs, shares = _training(folder / "training", 1 if options.quick else PAIRS)
        laps = _live(folder / "live", *((1, 2) if options.quick else (LAPS, SESSIONS)))
    cpu = median(on / off for on, off in pairs)
    chain = median(on / off for on, off in zip(laps["on"], laps["off"], strict=True))
    claims = (
        Claim(what="training's CPU time for an env step, everything shown", unit="×", measured=cpu, target=TRAINING,
              at_least=False),
        Claim(what="an iteration's time in which it is shown", unit="of it", measured=median(shares),
              target=TRAINING - 1, at_least=False),
        Claim(what="a live session's median time, everything shown", unit="×", measured=chain, target=CHAIN,
              at_least=False),
    )  # fmt: skip
    figures = {"cpu_us_a_step": [[1e6 * s for s in pair] for pair in pairs], "shown_share": shares, "median_ms": laps}
    return Outcome(claims=claims, figures=figures)


# -- training


def _training(folder: Path, pairs: int) -> tuple[list[tuple[float, float]], list[float]]:
    """CPU time for an env step (s) with and without, and the share of an iteration that showing it takes."""
    import torch

    from bench.settings import contest
    from trainers.ray_cluster import ray_running
    from trainers.rllib.engine import Engine

    torch.set_num_threads(1)
    given = contest(ROOT / "experiments" / "supply_chain.yaml", SIZES, episodes=100)
    found: list[tuple[float, float]] = []
    shares: list[float] = []
    with ray_running(given.build.experiment.resources), ExitStack() as closing:
        engine = Engine(given.build, given.seats, given.standardizer)
        closing.callback(engine.close)
        shown = closing.enter_context(_shown(given.build, folder))
        _iterate(engine)
        for _ in range(pairs):
            off, _ = _iterate(engine)
            on, share = _iterate(engine, shown)
            found.append((on, off))
            shares.append(share)
    return found, shares


def _iterate(engine: Any, shown: Callable[[Any, float], None] | None = None) -> tuple[float, float]:
    """An iteration: CPU time of this process for an env step (s), and the share of its time in which it was shown."""
    began, cpu = time.perf_counter(), time.process_time()
    given = engine.iterate()
    learnt = time.perf_counter()
    if shown:
        shown(given, learnt - began)
    ended = time.perf_counter()
    return (time.process_time() - cpu) / given.env_steps, (ended - learnt) / (ended - began)


@contextmanager
def _shown(build: Any, folder: Path) -> Generator[Callable[[Any, float], None]]:
    """Everything that a run shows of an iteration: metrics file, records, TensorBoard, a metrics port that is read."""
    from telemetry.metrics.port import MetricsPort
    from telemetry.metrics_file import MetricsFile
    from telemetry.records_file import RecordsDir
    from telemetry.run_dir import METRICS, RECORDS
    from telemetry.tensorboard import TensorBoardLog
    from trainers.checkpoints import TrainerState
    from trainers.figures import iteration_report
    from trainers.listeners import EpisodeSamples, Instruments, MetricsLines, Panel

    folder.mkdir(parents=True)
    state = TrainerState()
    file, log = MetricsFile(folder / METRICS), TensorBoardLog(folder / "tensorboard", baselines={"optimal": 55.0})
    with MetricsPort(0, "trainer", folder / "targets") as port, _scraped(port.address):
        listeners = [
            MetricsLines(file), EpisodeSamples(RecordsDir(folder / RECORDS)), Panel(log), Instruments(port.meters)
        ]  # fmt: skip

        def show(given: Any, seconds: float) -> None:
            nonlocal state
            steps = state.env_steps + given.env_steps
            state = replace(state, iteration=state.iteration + 1, env_steps=steps, seconds=state.seconds + seconds)
            report = iteration_report(build, state, given, seconds, None)
            for listener in listeners:
                listener.show(report, given)

        yield show
        log.close({}, {})
        file.close()


@contextmanager
def _scraped(address: str) -> Generator[None]:
    """Somebody reads the port again and again, as Prometheus does."""
    stop = Event()

    def read() -> None:
        while not stop.wait(SCRAPE_S):
            with urlopen(address, timeout=10) as answer:  # noqa: S310 - our own port
                answer.read()

    reader = Thread(target=read, daemon=True)
    reader.start()
    try:
        yield
    finally:
        stop.set()
        reader.join()


# -- live


@dataclass(frozen=True, slots=True)
class _Chain:
    """A team on stage, watched or not."""

    stage: Any
    cases: Iterator[Scenario]

    def lap(self, sessions: int) -> float:
        """The median session, one after the other (s)."""
        list(self.stage.run((next(self.cases) for _ in range(sessions)), window=1))
        return median(self.stage.taken())


def _live(folder: Path, laps: int, sessions: int) -> Mapping[str, Sequence[float]]:
    """Median sessions of each lap, ms, watched and not; the first lap of each warms up."""
    from bench.capacity.version import untrained

    version = untrained(folder / "version")
    took: dict[str, list[float]] = {"off": [], "on": []}
    with ExitStack() as closing:
        chains = {name: closing.enter_context(_chain(folder, version, name)) for name in took}
        for lap in range(laps + 1):
            for name, chain in chains.items():
                median_s = chain.lap(sessions)
                if lap:
                    took[name].append(1e3 * median_s)
    return took


@contextmanager
def _chain(folder: Path, version: Any, name: str) -> Generator[_Chain]:
    """The team in processes of its own; ``on``: metrics of each process, read every second, and traces in a file."""
    from assembly.stage_live import Place, agent_specs
    from assembly.watching import watched_stage
    from bench.capacity.live import TimedStage, cases
    from runtime.actor import hosting

    at = folder / name
    place = Place.under(at)
    watched = Watched(targets=at / "targets", port=0, traces=at / "traces.jsonl") if name == "on" else None
    specs = agent_specs(place, folder / "version", version, watched=watched)
    named = [replace(s, version=f"{s.version}@{name}") for s in specs.values()]
    with ExitStack() as closing:
        stage = closing.enter_context(TimedStage(place, version))
        if watched is not None:
            assert stage.bus.store is not None
            watch = closing.enter_context(watched_stage(stage.bus.store, watched, stage.bus.stats))
            closing.enter_context(_scraped(watch.port.address))
        closing.enter_context(hosting(named))
        yield _Chain(stage, cases(version))
