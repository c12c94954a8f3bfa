"""Gates L1 and L2 on the live runtime: real actors on a real bus, one killed, and a hundred cases."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path

import ray

from assembly.build import Build
from assembly.gates.chains import on_record
from assembly.gates.measured import Gate, Measure
from assembly.live import OF_A_SESSION, Manner
from assembly.stage_live import Place, Stage, agent_specs
from assembly.versions import load_version
from runtime.actor import AgentActor, AgentSpec
from runtime.records import Record
from runtime.types import AgentId, Scenario
from trainers.checkpoints import TrainerState
from trainers.exporting import Exported, export, write_lineage
from trainers.prepare import Prepared
from trainers.ray_cluster import ray_running
from trainers.rllib.algorithm import seats as seats_of

BACK_S = 30.0
"""How long a killed agent may take to serve again, s: some 3 s where nothing else runs, more where cores are shared."""
PATIENCE_S = 60.0
"""How long the gate waits for the next session to end, s: some hundred times what one takes."""
LOOK_S = 0.02
"""Pause between two looks at an agent that was killed, s."""


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
    with ray_running(build.experiment.resources), Stage(place, version) as stage:
        actors = {role: AgentActor.start(spec) for role, spec in _named(specs, directory).items()}
        try:
            back = _comes_back(actors[first])
            records = list(_played(stage, build, gates.chains))
        finally:
            for actor in actors.values():
                actor.stop()
    measure = Measure(
        what=f"{first} serves again, its process killed",
        ok=back < BACK_S,
        value=back,
        unit="s",
        wanted=f"< {BACK_S:g} s",
        note="live: an actor on the event bus",
    )
    return measure, on_record(records, build.team, gates.chains, gates.chains_complete)


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
    pid = actor.health().pid
    # Not by a signal: Ray would warn on the terminal of a crash that was meant.
    ray.kill(actor.handle, no_restart=False)
    began = time.monotonic()
    while actor.health(within_s=PATIENCE_S).pid == pid:
        time.sleep(LOOK_S)
    return time.monotonic() - began


def _played(stage: Stage, build: Build, count: int) -> Iterator[Sequence[Record]]:
    source = build.source("train")
    known = getattr(source, "count", None) or len(getattr(source, "scenarios", ())) or count
    cases: Iterator[Scenario] = islice(cycle(source(k) for k in range(min(count, known))), count)
    for ended in stage.run(cases, silence_s=PATIENCE_S):
        yield [r for r in stage.records(ended.session) if isinstance(r, OF_A_SESSION)]
