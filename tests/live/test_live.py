"""A team runs live as it was evaluated: over a real bus and store, whoever hosts its roles."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from assembly.build import Build
from assembly.live import CLIENT, NotUnderstood
from assembly.stage_live import Place, Stage, Unfinished, agent_specs, paid
from assembly.versions import load_version
from policies.export import BadExport
from policies.playing import Playable
from runtime.actor.attendant import Attendant
from runtime.bus import Event
from runtime.records import Decided, EpisodeEnded, EpisodeOpened
from runtime.types import Scenario
from tests.conftest import WaitUntil
from tests.live.versions import fresh_version
from trainers.play import play
from trainers.rllib.algorithm import make_adapter

CASES = 200


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Build, dict[str, Playable]]:
    directory = tmp_path_factory.mktemp("version")
    build, players = fresh_version(directory)
    return directory, build, players


@pytest.fixture
def stage(version: tuple[Path, Build, Any], tmp_path: Path) -> Iterator[Stage]:
    with Stage(Place.under(tmp_path / "live"), load_version(version[0])) as opened:
        yield opened


@pytest.fixture
def hosts(stage: Stage, version: tuple[Path, Build, Any], tmp_path: Path) -> Iterator[list[Attendant]]:
    specs = agent_specs(Place.under(tmp_path / "live"), version[0], stage.version)
    made = [Attendant(spec, spec.bus) for spec in specs.values()]
    yield made
    for host in made:
        host.stop()


def drawn(stage: Stage, index: int) -> Scenario:
    assert stage.version.team.generate is not None
    return stage.version.team.generate("eval", 2, index)


def decisions(records: Any) -> list[tuple[str, int, str]]:
    return [(r.agent, r.turn, r.call.model_dump_json()) for r in records if isinstance(r, Decided)]


def test_live_decides_as_evaluation_does(
    version: tuple[Path, Build, dict[str, Playable]], stage: Stage, hosts: list[Attendant]
) -> None:
    """Two hundred held-out cases, decision by decision, and the same pay."""
    _, build, players = version
    source = build.source("eval")
    cases = [source(k) for k in range(CASES)]
    live = {e.scenario: stage.records(e.session) for e in stage.run(cases)}
    seed = build.experiment.seed
    evaluated = {
        source(p.episode).id: p
        for p in play(lambda: make_adapter(build, "eval"), players, range(CASES), seed=seed, greedy=True)
    }
    assert live.keys() == evaluated.keys()
    for name, records in live.items():
        assert decisions(records) == decisions(evaluated[name].records), name
        assert paid(records) == pytest.approx(evaluated[name].team_return)
    taken = [tuple(decisions(r)) for r in live.values()]
    assert len({str(t) for t in taken}) > CASES / 10, "cases are told apart"
    assert sum(h.health().handled for h in hosts) == 3 * CASES


def test_the_bus_is_where_a_variable_says(
    version: tuple[Path, Build, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address with a password in it stands in no file and no argument: the stage and each role read the variable."""
    monkeypatch.setenv("THE_BUS", f"embedded:{tmp_path / 'redis'}")
    place, loaded = Place.under(tmp_path / "live", "env:THE_BUS"), load_version(version[0])
    with Stage(place, loaded) as stage:
        hosts = [Attendant(spec, spec.bus) for spec in agent_specs(place, version[0], loaded).values()]
        ended = list(stage.run([drawn(stage, k) for k in range(4)]))
        for host in hosts:
            host.stop()
    assert len(ended) == 4
    assert (tmp_path / "redis").is_dir()


def test_sessions_do_not_mix(stage: Stage, hosts: list[Attendant]) -> None:
    """A marker in every session is found in its own records and in nobody else's, and each has one correlation id."""
    generate = stage.version.team.generate
    assert generate is not None
    cases = [generate("eval", 2, k) for k in range(300)]
    marked = [replace(c, visible={**c.visible, "marker": f"canary-{k:05d}-x"}) for k, c in enumerate(cases)]
    opened = {stage.open(case): f"canary-{k:05d}-x" for k, case in enumerate(marked)}
    ended = list(stage.run([], window=1000))
    assert {e.session for e in ended} == set(opened)
    for session, marker in opened.items():
        text = json.dumps([r.model_dump(mode="json") for r in stage.records(session)])
        assert marker in text
        assert text.count("canary-") == text.count(marker)
        assert {r.correlation_id for r in stage.records(session)} == {session}


def test_a_new_host_goes_on(
    stage: Stage, hosts: list[Attendant], version: tuple[Path, Build, Any], tmp_path: Path, wait_until: WaitUntil
) -> None:
    """A second host of a role fences the first, and every session ends once."""
    generate = stage.version.team.generate
    assert generate is not None
    for k in range(60):
        stage.open(generate("eval", 3, k))
    spec = agent_specs(Place.under(tmp_path / "live"), version[0], stage.version)["investigator"]
    second = Attendant(spec, spec.bus)
    ended = list(stage.run([], window=1000))
    assert len({e.session for e in ended}) == 60
    for each in ended:
        assert sum(isinstance(r, EpisodeEnded) for r in stage.records(each.session)) == 1
    stage.open(generate("eval", 3, 60))
    assert len(list(stage.run([]))) == 1
    wait_until(lambda: hosts[1].health().fenced, "the first to hear of it")
    second.stop()


def test_what_nobody_understands_is_a_dead_letter(stage: Stage, hosts: list[Attendant], wait_until: WaitUntil) -> None:
    """An event by hand without a session, and a turn that is not due, end there, with the reason."""
    stage.bus.publish(Event(to="resolver", payload="test"))
    case = drawn(stage, 0)
    session = stage.open(case)
    list(stage.run([]))
    stage.bus.publish(Event(to="triage", payload={"handed": None}, correlation_id=session))
    wait_until(lambda: len(stage.bus.dead_letters()) == 2, "both to be given up")
    reasons = " ".join(d.reason for d in stage.bus.dead_letters())
    assert "has not been opened" in reasons
    assert "the session is over" in reasons
    assert NotUnderstood.__name__ in reasons


def test_silence_is_said(stage: Stage) -> None:
    """With nobody to host the roles, the wait ends and says so."""
    case = drawn(stage, 0)
    with pytest.raises(Unfinished, match="1 sessions did not end"):
        list(stage.run([case], silence_s=0.2))


def test_the_case_is_on_record(stage: Stage, hosts: list[Attendant]) -> None:
    """A session's records hold its scenario, so that it can be replayed and trained on."""
    case = drawn(stage, 7)
    (ended,) = stage.run([case])
    first = stage.records(ended.session)[0]
    assert isinstance(first, EpisodeOpened)
    assert (first.scenario, first.version) == (case.id, stage.version.name)
    assert first.case == {"visible": case.visible, "truth": case.truth, "seed": case.seed}
    assert CLIENT not in {getattr(r, "agent", "") for r in stage.records(ended.session)}


def test_golden_inputs(version: tuple[Path, Build, Any]) -> None:
    """A version proves itself by deciding as it did at export, and does not where its weights are others'."""
    loaded = load_version(version[0])
    assert len(loaded.golden) > 10
    assert {g["agent"] for g in loaded.golden} == {"triage", "investigator", "resolver"}
    assert loaded.proves_itself() == ""
    with torch.no_grad():
        for weights in loaded.seats["triage"].actor.parameters():
            weights.mul_(-1)
    assert "golden input" in loaded.proves_itself()


def test_a_changed_export_is_refused(version: tuple[Path, Build, Any], tmp_path: Path) -> None:
    """A file that was changed, and tools that are others', are told apart."""
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(version[0], copy)
    (copy / "team.json").write_bytes((copy / "team.json").read_bytes() + b" ")
    with pytest.raises(BadExport, match=r"was changed.*team\.json"):
        load_version(copy)
