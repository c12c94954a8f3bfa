"""The loop closes: what a team was asked live is what the next version is trained on, but for what is held out."""

import json
from pathlib import Path

import pytest

from assembly.experiment import Experiment
from assembly.loading import load
from assembly.recorded import recorded, settled
from assembly.sections import Scenarios
from runtime.errors import TeamError
from runtime.recorded import recorded_sessions, write_sessions
from runtime.records import EpisodeEnded, EpisodeOpened
from runtime.store import history, open_store
from runtime.types import Scenario
from tests.trainers.commands import SHOP, Command
from tests.trainers.little_shop import generate, team

VERSION = "0" * 64


def asked(store_url: str, cases: list[Scenario], at: float = 100.0) -> None:
    """Sessions on these cases, as the live runtime records them."""
    store = open_store(store_url, "normal")
    for place, case in enumerate(cases):
        name = f"{case.id}-{place}-{at:g}"
        opened = EpisodeOpened(
            correlation_id=name, at=at + place, team="little_shop", scenario=case.id, seed=0, version=VERSION,
            case={"visible": case.visible, "truth": case.truth, "seed": case.seed},
        )  # fmt: skip
        ended = EpisodeEnded(correlation_id=name, at=at + place + 0.5, outcome={}, success=True)
        store.write(lambda c, o=opened, e=ended: history.add(c, "little_shop", [(o, ""), (e, "")]))
    store.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Thirty cases of customers, one of them twice, five that evaluation holds out, and two without a truth."""
    where = f"sqlite:///{tmp_path}/store.db"
    live = [generate("customers", 9, 1000 + k) for k in range(30)]
    held_out = [generate("eval", 2, k) for k in range(5)]
    unknown = [Scenario(id=f"unknown-{k}", visible={"case": k}, truth={}, seed=k) for k in range(2)]
    asked(where, [*live, live[0], *held_out, *unknown])
    return where


def section(**fields: object) -> Scenarios:
    return Scenarios.model_validate({"from": "live", "eval": {"seed": 2, "count": 40}, **fields})


def test_held_out_repeated_and_unplayable_cases_are_left_out(url: str) -> None:
    """And counted: nothing disappears in silence."""
    found = recorded(section(store=url), team())
    assert (len(found.scenarios), found.sessions, found.repeated, found.held_out, found.unplayable) == (30, 38, 1, 5, 2)
    assert {s.id for s in found.scenarios} == {f"customers-9-{1000 + k}" for k in range(30)}
    assert found.versions == {VERSION: 30}


def test_held_out_cases_of_a_file_are_left_out_whatever_they_are_called(url: str, tmp_path: Path) -> None:
    """By what they say: a file gives them other names and other chance."""
    held_out = [generate("customers", 9, 1000 + k) for k in range(4)]
    lines = [json.dumps({"id": f"mine-{k}", "visible": s.visible, "truth": s.truth}) for k, s in enumerate(held_out)]
    (tmp_path / "cases.jsonl").write_text("\n".join(lines))
    found = recorded(section(store=url, eval={"file": str(tmp_path / "cases.jsonl")}), team())
    assert {s.id for s in found.scenarios}.isdisjoint({s.id for s in held_out})


def test_two_cases_of_one_name_are_two(url: str) -> None:
    """Whoever opens sessions gives them what names he likes."""
    other = generate("customers", 10, 5000)
    asked(url, [Scenario(id="customers-9-1000", visible=other.visible, truth=other.truth, seed=other.seed)], at=500.0)
    found = recorded(section(store=url), team())
    assert len({s.id for s in found.scenarios}) == len(found.scenarios) == 31


def test_where_texts_are_few_a_case_is_known_by_its_chance_too(url: str) -> None:
    """Cases that say the same as each other, as two shopping lists may, are no repetitions of a held-out one."""
    case, other = generate("eval", 2, 7), generate("customers", 9, 1000)
    twins = [
        Scenario(id=f"twin-{k}", visible=c.visible, truth=c.truth, seed=k) for c in (case, other) for k in range(2)
    ]
    asked(url, twins, at=500.0)
    found = recorded(section(store=url), team())
    assert {"twin-0", "twin-1"} <= {s.id.partition("@")[0] for s in found.scenarios}
    assert found.held_out == 5


def test_a_time_and_a_team_are_chosen(url: str) -> None:
    """Nothing that fits is an error that says what there was."""
    asked(url, [generate("customers", 11, 2000 + k) for k in range(3)], at=1_000_000.0)
    since = section(store=url, since="1970-01-10")
    assert {s.id for s in recorded(since, team()).scenarios} == {f"customers-11-{2000 + k}" for k in range(3)}
    with pytest.raises(TeamError, match=r"0 recorded sessions: .*none is left for another"):
        recorded(section(store=url, team="another"), team())


def test_a_file_is_read_like_a_store(url: str, tmp_path: Path) -> None:
    """What `python -m runtime.recorded` wrote gives the same scenarios."""
    store = open_store(url)
    write_sessions(tmp_path / "recorded.parquet", recorded_sessions(store, "little_shop"))
    store.close()
    file = section(store=str(tmp_path / "recorded.parquet"))
    assert recorded(file, team()) == recorded(section(store=url), team())


def test_a_resumed_run_trains_on_the_same(url: str) -> None:
    """The moment of the start is written down: what is asked later belongs to a later run."""
    experiment = load(SHOP, [f"scenarios={{from: live, store: '{url}', eval: {{count: 40}}}}"])
    begun = settled(experiment, 1000.0)
    assert begun.scenarios.until == "1970-01-01T00:16:40+00:00"
    assert settled(begun, 9000.0) == begun
    assert Experiment.model_validate_json(begun.model_dump_json()) == begun
    asked(url, [generate("customers", 12, k) for k in range(5)], at=2000.0)
    assert recorded(begun.scenarios, team()).sessions == 38
    assert recorded(experiment.scenarios, team()).sessions == 43


def test_a_version_is_trained_on_what_was_asked_live(url: str, command: Command) -> None:
    """The run says on what, plays nothing else, and the version names its parent."""
    live = f'scenarios={{from: live, store: "{url}", eval: {{count: 40}}}}'
    ran = command(live, "stop.iterations=1")
    assert ran.code == 0, ran.err
    assert "38 recorded sessions: 30 scenarios to train on (1 repeated, 5 held out, 2 not playable)" in ran.out
    assert ran.directory
    assert load(ran.directory / "experiment.yaml").scenarios.source == "live"
    lineage = json.loads((ran.directory / "version" / "lineage.json").read_text())
    assert (lineage["parent"], lineage["recorded"]["scenarios"]) == (VERSION, 30)
    trained = {_scenario(f) for f in (ran.directory / "records").glob("*.jsonl")}
    assert trained
    assert all(name.startswith(("customers-9-", "eval-2-")) for name in trained), trained


def _scenario(file: Path) -> str:
    return json.loads(file.read_text().splitlines()[0])["scenario"]
