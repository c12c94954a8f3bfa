"""Regression cases are played at the end of a run and reported by name, and never trained on."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from assembly.build import REGRESSIONS, Build
from assembly.cases import ALIKE, Case, read_cases, taken_along, without, write_cases
from assembly.experiment import Experiment
from assembly.loading import load
from assembly.problems import Refused
from assembly.team_check import Known, accept
from envs.scenarios import FAR, Generated, Listed
from rewards.terms import TERMS
from runtime.errors import TeamError
from runtime.recorded import RecordedSession
from runtime.records import EpisodeEnded, EpisodeOpened, Rewarded
from runtime.types import Scenario
from telemetry.progress import RunConsole, closing_table
from telemetry.scalars import RESULT
from tests.trainers.commands import SHOP, Command
from tests.trainers.little_shop import generate, team


def went(scenario: Scenario, right: float, billed: float = 0.0, name: str = "", of: str = "little_shop") -> Case:
    """A session on that scenario that was paid so much."""
    told = {"correlation_id": name or scenario.id, "at": 1.0}
    asked = {"visible": dict(scenario.visible), "truth": dict(scenario.truth), "seed": scenario.seed}
    records = [
        EpisodeOpened(**told, team=of, scenario=scenario.id, seed=0, case=asked),
        Rewarded(**told, agent="clerk", turn=0, term="right", value=right),
        Rewarded(**told, agent="clerk", turn=0, term="billed", value=billed),
        EpisodeEnded(**told, outcome={}, success=right > 0),
    ]
    session = RecordedSession(
        team=of,
        session=name or scenario.id,
        version="0" * 64,
        scenario=scenario.id,
        scenario_seed=scenario.seed,
        visible=asked["visible"],
        truth=asked["truth"],
        opened=1.0,
        ended=1.0,
        success=right > 0,
        truncated=False,
        degraded=False,
        reward=None,
        records=tuple(r.model_dump_json() for r in records),
    )
    return Case(name=name or scenario.id, why="a customer complained", session=session)


def cases_at(folder: Path, cases: Sequence[Case]) -> Path:
    file = folder / "cases.jsonl"
    write_cases(file, cases)
    return file


def test_a_case_is_a_line_whatever_it_says(tmp_path: Path) -> None:
    """People paste what they like, and Unicode has more ends of lines than a file of cases."""
    odd = replace(generate("train", 1, 2), visible={"case": 2, "said": "one\u2028two\x85three\x0cfour\rfive\nsix"})
    assert [c.scenario for c in read_cases(cases_at(tmp_path, [went(odd, -4.0)]))] == [odd]


# -- never trained on


def test_cases_are_left_out_of_a_stream() -> None:
    """In the place of each comes another scenario, far away in the stream; the others stay where they were."""
    stream = Generated(team(), "train", 1)
    cases = [went(stream(k), -4.0) for k in (3, 7)]
    kept = without(stream, cases)
    assert kept.dropped == 2
    barred = {case.scenario.id for case in cases}
    assert barred.isdisjoint({kept.source(k).id for k in range(200)})
    assert [kept.source(k) for k in (0, 1, 2, 4)] == [stream(k) for k in (0, 1, 2, 4)]
    assert kept.source(3) == stream(3 + FAR)


def test_cases_are_left_out_of_a_list() -> None:
    """By what they say, whatever they are called there."""
    listed = Listed([replace(generate("train", 1, k), id=f"mine-{k}") for k in range(40)], seed=0)
    kept = without(listed, [went(generate("train", 1, 5), -4.0), went(generate("eval", 2, 5), -4.0)])
    assert kept.dropped == 1
    assert {kept.source(k).id for k in range(39)} == {f"mine-{k}" for k in range(40)} - {"mine-5"}
    assert without(listed, []).source is listed


def test_cases_are_left_out_of_what_repeats() -> None:
    """Of a few scenarios over and over, too: they come again, the case does not."""
    stream = Generated(team(), "train", 1, count=50)
    kept = without(stream, [went(stream(3), -4.0)])
    assert stream(3).id not in {kept.source(k).id for k in range(150)}


def test_scenarios_that_are_all_alike_cannot_be_kept_apart() -> None:
    """To leave out a case must not leave out a kind of cases: that is refused, and told what to do."""

    def coin(split: str, seed: int, index: int) -> Scenario:
        return Scenario(id=f"{split}-{seed}-{index}", visible={"case": 0}, truth={"wanted": ["tea", "salt"][index % 2]})

    stream = Generated(replace(team(), generate=coin), "train", 1)
    with pytest.raises(TeamError, match=r"1000 of 2000 training scenarios are the same as one of 1 regression cases"):
        without(stream, [went(coin("live", 0, 0), -4.0)])
    few = Listed([generate("train", 1, 0)], seed=0)
    with pytest.raises(TeamError, match="too alike"):
        without(few, [went(generate("train", 1, 0), -4.0)])
    assert 0 < ALIKE < 0.5


def experiment(file: Path, *more: str) -> Experiment:
    return load(SHOP, [f"evaluation.regressions={file}", *more])


def test_a_build_knows_its_cases(tmp_path: Path) -> None:
    """Those that the world can be made of are played; the others are on record only. Training has none of them."""
    unknown = Scenario(id="unknown", visible={"case": 1}, truth={}, seed=1)
    train = [generate("train", 1, k) for k in (2, 9)]
    build = Build(experiment(cases_at(tmp_path, [went(s, -4.0) for s in (*train, unknown)])), SHOP.parent)
    assert [c.name for c in build.cases] == ["train-1-2", "train-1-9", "unknown"]
    assert [c.name for c in build.playable_cases] == ["train-1-2", "train-1-9"]
    assert [build.source(REGRESSIONS)(k).id for k in range(2)] == ["train-1-2", "train-1-9"]
    assert build.kept_out == 2
    assert {"train-1-2", "train-1-9"}.isdisjoint({build.source("train")(k).id for k in range(50)})
    plain = Build(load(SHOP, []), SHOP.parent)
    assert (plain.cases, plain.kept_out, plain.source("train")(2)) == ((), 0, train[0])


# -- a file of cases in an experiment


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Not there, no cases, another team's, nothing left to train on: with the key, before anything starts."""
    for text, told in (
        (None, r"evaluation.regressions: cannot be read: No such file"),
        ("{}\n", r"evaluation.regressions: .*line 1: no regression case"),
        (
            went(generate("a", 1, 1), 1.0, of="others").model_dump_json(),
            r"has cases of others, and the team is little_shop",
        ),
    ):
        file = tmp_path / "cases.jsonl"
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
        with pytest.raises(Refused, match=told):
            accept(SHOP, [f"evaluation.regressions={file}"], Known(TERMS))
    file = cases_at(tmp_path, [went(generate("train", 1, 0), -4.0)])
    with pytest.raises(Refused, match=r"1 of 1 training scenarios are the same"):
        accept(SHOP, [f"evaluation.regressions={file}", "scenarios.train.count=1"], Known(TERMS))
    with pytest.raises(Refused, match=r"evaluation.regressions: has no effect: a PettingZoo environment"):
        accept(SHOP.parents[2] / "experiments" / "tictactoe.yaml", [f"evaluation.regressions={file}"], Known(TERMS))


def test_what_else_is_wrong_is_not_said_of_the_cases(tmp_path: Path) -> None:
    """Scenarios that cannot be read are a fault of their own; a generator that raises is named with its line."""
    file = cases_at(tmp_path, [went(generate("train", 1, 0), -4.0)])
    with pytest.raises(Refused) as refused:
        accept(SHOP, [f"evaluation.regressions={file}", "scenarios.train.file=nowhere.jsonl"], Known(TERMS))
    assert "scenarios.train.file: cannot be read" in str(refused.value)
    assert "evaluation.regressions:" not in str(refused.value)

    (tmp_path / "burnt_shop.py").write_text(
        "from dataclasses import replace\nfrom tests.trainers.little_shop import team as shop\n\n\n"
        "def generate(split, seed, index):\n    raise OSError('the list has burnt')\n\n\n"
        "def team():\n    return replace(shop(), generate=generate)\n"
    )
    burnt = tmp_path / "burnt_shop.yaml"
    burnt.write_text(SHOP.read_text().replace("little_shop:team", "burnt_shop:team"))
    with pytest.raises(Refused, match=r"training scenarios raised OSError at .*burnt_shop.py:6: the list has burnt"):
        accept(burnt, [f"evaluation.regressions={file}"], Known(TERMS))


def test_a_store_that_is_away_is_no_fault_of_a_file_with_cases(tmp_path: Path) -> None:
    """The doctor and the run say so."""
    file = cases_at(tmp_path, [went(generate("train", 1, 0), -4.0)])
    away = ["scenarios.from=live", "scenarios.store=postgresql://nobody:secret@127.0.0.1:1/none"]
    assert accept(SHOP, [f"evaluation.regressions={file}", *away], Known(TERMS)).team


def test_the_path_is_from_the_experiment_files_folder(tmp_path: Path) -> None:
    """As with every path in it."""
    copy = tmp_path / "little_shop.yaml"
    copy.write_text(
        SHOP.read_text().replace("evaluation: {every: 3}", "evaluation: {every: 3, regressions: cases.jsonl}")
    )
    assert load(copy).evaluation.regressions == str(tmp_path / "cases.jsonl")


def test_a_run_takes_its_cases_along(tmp_path: Path) -> None:
    """What is added to the file later belongs to later runs: resumed, a run trains on what it began with."""
    file, run = cases_at(tmp_path, [went(generate("train", 1, 2), -4.0)]), tmp_path / "run"
    run.mkdir()
    begun = taken_along(experiment(file), run)
    assert begun.evaluation.regressions == str(run / "regressions.jsonl")
    cases_at(tmp_path, [went(generate("train", 1, k), -4.0) for k in (2, 3)])
    assert taken_along(begun, run) == begun
    assert len(Build(begun, SHOP.parent).cases) == 1
    plain = load(SHOP, [])
    assert taken_along(plain, run) is plain


# -- at the end of a run


def test_a_run_reports_each_case_by_its_name(tmp_path: Path, command: Command) -> None:
    """What it is paid now beside what was recorded; how many got worse stands in the closing table."""
    ill = [went(generate("train", 1, k), -4.0, name=f"ill-{k}") for k in range(3)]
    well = went(generate("customers", 5, 1), +400.0, name="once-well")
    file = cases_at(tmp_path, [*ill, well])
    ran = command(f"evaluation.regressions={file}", "stop.iterations=2")
    assert ran.code == 0, ran.err
    assert "regressions: 4 cases, 3 training scenarios left out for them" in ran.out
    found = ran.result["regressions"]
    assert list(found) == ["ill-0", "ill-1", "ill-2", "once-well"]
    assert found["once-well"]["worse"] is True
    for name in ("ill-0", "ill-1", "ill-2"):
        assert found[name]["return_recorded"] == -4.0
        assert found[name]["return_now"] == pytest.approx(sum(found[name]["terms"].values()))
        assert found[name]["worse"] == (found[name]["return_now"] < -4.0)
        assert found[name]["passed"] == (found[name]["success"] and not found[name]["worse"])
    worse = [n for n, c in found.items() if c["worse"]]
    passed = [n for n, c in found.items() if c["passed"]]
    assert f"{len(passed)} of 4 passed, {len(worse)} worse than recorded" in ran.out
    assert "worse once-well" in ran.out
    assert ran.directory
    trained = {
        json.loads(f.read_text().splitlines()[0])["scenario"] for f in (ran.directory / "records").glob("*.jsonl")
    }
    assert trained.isdisjoint({case.scenario.id for case in read_cases(file)})


def test_without_cases_the_table_says_nothing_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Results from before there were any are read as they were."""
    old = RESULT.validate_json('{"status": "done", "run_dir": "runs/x"}')
    assert old.regressions == {}
    RunConsole(width=100).print(closing_table(old, {}))
    assert "regressions" not in capsys.readouterr().out
