"""Gates L1 and L2 on the live runtime: real actors on a real bus, one killed, and a hundred cases."""

import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path

import ray

from assembly.build import Build
from assembly.gates.chains import PROMISE, on_record
from assembly.gates.measured import Gate, Measure
from assembly.live import OF_A_SESSION, Manner
from assembly.stage_live import Place, Stage, Unfinished, agent_specs
from assembly.versions import load_version
from runtime.actor import AgentActor, AgentSpec, DeadlinePassed
from runtime.errors import RepertoryError
from runtime.records import Record
from runtime.types import AgentId, Scenario
from trainers.checkpoints import TrainerState
from trainers.exporting import Exported, export, write_lineage
from trainers.prepare import Prepared
from trainers.ray_cluster import ray_running
from trainers.rllib.algorithm import seats as seats_of

BACK_S = 120.0
"""How long a killed agent may take to serve again, s: some 3 s where nothing else runs, over half a minute where twenty
others want the same cores."""
PATIENCE_S = 60.0
"""How long the gate waits for the next session to end, s: some hundred times what one takes."""
START_S = 180.0
"""How long an agent may take to start, s: some 5 s where nothing else runs, over a minute where twenty others want the
same cores. It bounds a wait and is no figure that the gate judges."""
LOOK_S = 0.02
"""Pause between two looks at an agent that was killed, s."""


class Late(RepertoryError):
    """Something on the live runtime did not come in time.

    Args:
        what: was waited for.
        waited_s: how long.
        load: how many processes wanted a core in the last minute.
        cores: how many there are.
    """

    def __init__(self, what: str, waited_s: float, load: float, cores: int) -> None:
        super().__init__(what, waited_s, load, cores)
        self.what, self.waited_s, self.load, self.cores = what, waited_s, load, cores

    def __str__(self) -> str:
        said = f"waited {self.waited_s:.0f} s for {self.what}; load {self.load:.1f} on {self.cores} cores"
        if self.load > self.cores:
            return (
                f"{said}: the machine is busy, so try again when it is less so, or leave this out by gates.live=false"
            )
        return f"{said}, so it is not the machine: a tool or a policy may hang; gates.live=false leaves this out"


def live_gate(build: Build, prepared: Prepared, directory: Path) -> tuple[Measure, Gate]:
    """Run the untrained team live: whether killed agents come back (for L1), and the chains (L2).

    Args:
        build: the experiment, of a team.
        prepared: what training starts from.
        directory: of the run; the rehearsal's bus and store lie below it.

    Raises:
        ServiceUnavailable: the declared Redis is not there.
    """
    assert build.team is not None
    gates, where = build.experiment.gates, directory / "rehearsal"
    export(build, _untrained(build, prepared), where / "version")
    write_lineage(where / "version", build, TrainerState(), directory)  # where the team's modules lie
    version = load_version(where / "version")
    place, first = Place.under(where, build.experiment.redis), build.team.turns.order[0]
    specs = agent_specs(place, where / "version", version, Manner(greedy=False, seed=build.experiment.seed))
    with ray_running(build.experiment.resources), Stage(place, version) as stage, ExitStack() as closing:
        try:
            actors = _started(_named(specs, directory), closing)
            back = _comes_back(actors[first])
            records = list(_played(stage, build, gates.chains))
        except Late as late:
            return _not_there(late)
    measure = Measure(
        what=f"{first} serves again, its process killed",
        ok=back < BACK_S,
        value=back,
        unit="s",
        wanted=f"< {BACK_S:g} s",
        note="live: an actor on the event bus",
    )
    return measure, on_record(records, build.team, gates.chains, gates.chains_complete)


def _not_there(late: Late) -> tuple[Measure, Gate]:
    """The gates where something did not come in time."""
    what, wanted = "the team is there on the live runtime", "in time"
    measure = Measure(what=what, ok=False, value=late.waited_s, unit="s", wanted=wanted, note=str(late))
    return measure, Gate(name="L2", promise=PROMISE, not_applicable="the live runtime was too slow to try it")


@contextmanager
def _in_time(what: str) -> Generator[None]:
    """Say what was waited for, and how busy the machine is, where that takes too long. Raises Late."""
    began = time.monotonic()
    try:
        yield
    except (DeadlinePassed, Unfinished) as error:
        waited_s, load = time.monotonic() - began, os.getloadavg()[0]
        said = f"{what} ({error})" if isinstance(error, Unfinished) else what
        raise Late(said, waited_s, load, os.cpu_count() or 1) from error


def _started(specs: Mapping[AgentId, AgentSpec], closing: ExitStack) -> dict[AgentId, AgentActor]:
    """All agents, which end when the stack is closed."""
    actors: dict[AgentId, AgentActor] = {}
    for role, spec in specs.items():
        with _in_time(f"{role} to start"):
            actors[role] = AgentActor.start(spec, within_s=START_S)
        closing.callback(actors[role].stop)
    return actors


def _untrained(build: Build, prepared: Prepared) -> Exported:
    seated = seats_of(build, prepared.featurizers)
    return Exported(
        actors={n: s.actor() for n, s in seated.items()},
        specs={n: s.spec for n, s in seated.items()},
        featurizers=prepared.featurizers,
        statistics={},
    )


def _named(specs: Mapping[AgentId, AgentSpec], directory: Path) -> dict[AgentId, AgentSpec]:
    """The agents under names that no other run on this Ray has."""
    from dataclasses import replace

    return {role: replace(s, version=f"{s.version}@{directory.resolve()}") for role, s in specs.items()}


def _comes_back(actor: AgentActor) -> float:
    """Kill an actor's process; how long until another one serves in its place, s."""
    role = actor.spec.role
    with _in_time(f"{role} to say how it is"):
        pid = actor.health(within_s=PATIENCE_S).pid
    # Not by a signal: Ray would warn on the terminal of a crash that was meant.
    ray.kill(actor.handle, no_restart=False)
    began = time.monotonic()
    with _in_time(f"{role} to serve again, its process killed"):
        while actor.health(within_s=PATIENCE_S).pid == pid:
            time.sleep(LOOK_S)
    return time.monotonic() - began


def _played(stage: Stage, build: Build, count: int) -> Iterator[Sequence[Record]]:
    source = build.source("train")
    known = getattr(source, "count", None) or len(getattr(source, "scenarios", ())) or count
    cases: Iterator[Scenario] = islice(cycle(source(k) for k in range(min(count, known))), count)
    with _in_time(f"the next of {count} cases to end"):
        for ended in stage.run(cases, silence_s=PATIENCE_S):
            yield [r for r in stage.records(ended.session) if isinstance(r, OF_A_SESSION)]
