"""``python -m runtime.run TEAM --version DIR --scenarios FILE``: a trained team at work on the event bus.

Nothing heavy is imported before the arguments have been looked at. (A thin command: it may import ``assembly``.)
"""

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from runtime.errors import RepertoryError, ServiceUnavailable

if TYPE_CHECKING:
    from assembly.live import Manner
    from assembly.stage_live import Place, Stage
    from assembly.stage_temporal import TemporalStage
    from assembly.versions import Version
    from assembly.watching import Watched
    from runtime.store import Store
    from runtime.types import Scenario

DONE, FAULT, REFUSED, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes."""
SHOWN = 10
"""Sessions that are printed one by one; of the others only what they came to."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        return _command(asked)
    except KeyboardInterrupt:
        print("interrupted: what was committed is kept; the same --dir goes on with it", file=sys.stderr)
        return INTERRUPTED
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE
    except RepertoryError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return REFUSED if type(error).__name__ in ("BadExport", "TeamError") else FAULT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m runtime.run", description="Run a trained team live: an agent a role, events over Redis Streams."
    )
    parser.add_argument("team", metavar="TEAM", help="the team's name; it must be that of the version")
    parser.add_argument("--version", type=Path, required=True, metavar="DIR", help="an export: RUN_DIR/version")
    parser.add_argument(
        "--scenarios", required=True, metavar="FILE", help="a JSONL file, or SPLIT:SEED:COUNT for the team's generator"
    )
    parser.add_argument(
        "--dir", type=Path, metavar="DIR", help="where the bus and the store live (live/TEAM/TIMESTAMP)"
    )
    parser.add_argument("--redis", help="embedded (the default), redis://… or rediss://…, or env:NAME")
    parser.add_argument(
        "--coordinator",
        choices=("embedded", "temporal"),
        default="embedded",
        help="who says which role is next: the event bus, or a Temporal server",
    )
    parser.add_argument("--temporal", metavar="HOST:PORT", help="the Temporal server (127.0.0.1:7233)")
    parser.add_argument("--store", metavar="URL", help="sqlite:///… or postgresql://… (a file in --dir)")
    parser.add_argument("--window", type=int, default=256, metavar="N", help="sessions that are open at once")
    parser.add_argument("--sample", action="store_true", help="draw decisions, in place of taking the likeliest")
    parser.add_argument("--seed", type=int, default=0, help="what chance is drawn from (0)")
    parser.add_argument(
        "--patience", type=float, default=60.0, metavar="S", help="give up after so long without an end"
    )
    parser.add_argument("--port", type=int, default=9464, metavar="N", help="metrics, or the next free one (9464)")
    parser.add_argument("--otlp", metavar="URL", help="a collector for metrics and traces: http://HOST:4318")
    parser.add_argument("--traces", type=Path, metavar="FILE", help="every chain's trace, as OTLP JSON lines")
    parser.add_argument(
        "--debug", metavar="ROLE", help="that agent in the foreground, a breakpoint before each decision"
    )
    return parser


def _command(asked: argparse.Namespace) -> int:
    from assembly.versions import load_version

    if idle := _idle(asked):
        print(idle, file=sys.stderr)
        return REFUSED
    version = load_version(asked.version)
    names = [r.name for r in version.team.roles]
    if asked.team != version.team.name:
        print(f"{asked.version} is a version of {version.team.name}, not of {asked.team}", file=sys.stderr)
        return REFUSED
    if asked.debug and asked.debug not in names:
        print(f"--debug {asked.debug}: {asked.team} has no such role; it has {', '.join(names)}", file=sys.stderr)
        return REFUSED
    try:
        scenarios = list(_scenarios(asked.scenarios, version))
    except (OSError, ValueError) as error:
        print(f"--scenarios {asked.scenarios}: {error}", file=sys.stderr)
        return REFUSED
    return _live(asked, version, scenarios)


def _idle(asked: argparse.Namespace) -> str:
    """What was asked for and would do nothing; empty: nothing."""
    if asked.coordinator == "embedded":
        return "--temporal names a server for --coordinator temporal, which was not asked for" if asked.temporal else ""
    unused = [f"--{name}" for name in ("redis", "debug") if getattr(asked, name)]
    return f"{', '.join(unused)}: not with --coordinator temporal, which has no bus and no foreground" if unused else ""


def _scenarios(asked: str, version: "Version") -> "Iterator[Scenario]":
    from envs.scenarios import read_scenarios

    split, _, rest = asked.partition(":")
    seed, _, count = rest.partition(":")
    if not (seed.isdigit() and count.isdigit()):
        yield from read_scenarios(Path(asked))
        return
    if version.team.generate is None:
        raise ValueError(f"{version.team.name} makes no scenarios of its own: name a JSONL file")
    for index in range(int(count)):
        yield version.team.generate(split, int(seed), index)


def _live(asked: argparse.Namespace, version: "Version", scenarios: "list[Scenario]") -> int:
    from assembly.live import Manner
    from assembly.stage_live import Place

    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    asked.dir = asked.dir or Path("live") / asked.team / stamp
    place = Place.under(asked.dir, asked.redis or "embedded", asked.store)
    manner = Manner(greedy=not asked.sample, seed=asked.seed)
    by = _by_temporal if asked.coordinator == "temporal" else _by_bus
    return by(asked, place, version, manner, scenarios)


def _by_bus(
    asked: argparse.Namespace,
    place: "Place",
    version: "Version",
    manner: "Manner",
    scenarios: "list[Scenario]",
) -> int:
    from assembly.stage_live import Stage, agent_specs
    from assembly.watching import watched_stage
    from runtime.actor import hosting

    watched = _watched(asked)
    specs = agent_specs(place, asked.version, version, manner, watched)
    if asked.debug:
        from runtime.debug import stop_before

        halting = agent_specs(place, asked.version, version, replace(manner, before=stop_before(asked.debug)))
        specs[asked.debug] = halting[asked.debug]
    with Stage(place, version) as stage:
        print(f"bus: {place.redis}")
        with ExitStack() as closing:
            watch = closing.enter_context(watched_stage(cast("Store", stage.bus.store), watched, stage.bus.stats))
            pids = closing.enter_context(hosting(list(specs.values()), foreground=asked.debug))
            print(f"metrics: {watch.port.address}, every process in {watched.targets}")
            _show(pids, place)
            return _played(stage, scenarios, asked)


def _by_temporal(
    asked: argparse.Namespace,
    place: "Place",
    version: "Version",
    manner: "Manner",
    scenarios: "list[Scenario]",
) -> int:
    from assembly.stage_live import agent_specs
    from assembly.stage_temporal import TemporalStage, told_specs
    from assembly.watching import watched_stage
    from runtime.coordinator.seats import seated
    from runtime.coordinator.temporal import ADDRESS, reachable
    from runtime.store import open_store

    address = asked.temporal or ADDRESS
    reachable(address)
    watched = _watched(asked)
    specs = told_specs(agent_specs(place, asked.version, version, manner, watched), version)
    with ExitStack() as closing:
        store = open_store(place.store)
        closing.callback(store.close)
        watch = closing.enter_context(watched_stage(store, watched))
        seats = closing.enter_context(seated(specs))
        stage = closing.enter_context(TemporalStage(place.store, version, seats.tell, address, manner))
        print(f"temporal: {address}")
        print(f"metrics: {watch.port.address}, every process in {watched.targets}")
        _show(seats.pids, place)
        return _played(stage, scenarios, asked)


def _watched(asked: argparse.Namespace) -> "Watched":
    from assembly.watching import Watched

    return Watched(targets=asked.dir.resolve() / "targets", port=asked.port, otlp=asked.otlp, traces=asked.traces)


def _show(pids: "Mapping[str, int]", place: "Place") -> None:
    from sqlalchemy.engine import make_url

    store = make_url(place.store).render_as_string(hide_password=True)
    print(f"store: {store}\nany session by its id: python -m telemetry.trace ID --store {store}")
    for role, pid in pids.items():
        print(f"Agent-{role}: pid {pid}")


def _played(stage: "Stage | TemporalStage", scenarios: "list[Scenario]", asked: argparse.Namespace) -> int:
    from time import monotonic

    from assembly.stage_live import paid

    began, returns, succeeded, missing = monotonic(), list[float](), 0, 0
    for place, ended in enumerate(stage.run(scenarios, window=asked.window, silence_s=asked.patience)):
        value = paid(stage.records(ended.session))
        succeeded += ended.success
        missing += value is None
        returns += [] if value is None else [value]
        if place < SHOWN:
            worth = "missing" if value is None else f"{value:.2f}" if stage.version.judge.terms else "nothing known"
            print(f"{ended.session}  {ended.scenario}  success {ended.success}  paid {worth}  {dict(ended.outcome)}")
        elif place == SHOWN:
            print("… and so on; every session is in the store under its correlation id")
    seconds = monotonic() - began
    mean = f"{sum(returns) / len(returns):.2f}" if returns else "none"
    print(
        f"{len(scenarios)} sessions in {seconds:.1f} s, {succeeded} successes, mean pay {mean}"
        f"{f', {missing} with a missing reward' if missing else ''}, dead letters {stage.dead}"
    )
    return DONE


if __name__ == "__main__":
    sys.exit(main())
