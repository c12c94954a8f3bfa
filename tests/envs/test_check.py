"""The check finds what is wrong with a team, says where and what to do, and lets sound teams pass."""

import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np
import pytest

from envs.check import CHECKS, Report, check_team, load_team, main
from envs.scenarios import Listed, read_scenarios
from runtime.errors import TeamError
from runtime.records import ToolCall
from runtime.tools import tool
from runtime.types import Baseline, Pipeline, Role, RoundRobin, Scenario, Team
from tests.envs.toys import (
    DOCTOR,
    NURSE,
    Clinic,
    at_once,
    call,
    clinic,
    first_legal,
    generate,
    rounds,
    take_temperature,
    tools,
    treat,
    weigh,
    with_budget,
)

ROOT = Path(__file__).parent.parent.parent
SHIPPED = ("envs.supply_chain:team", "envs.customer_service:team", "envs.equipment_inspection:team")


def said(report: Report) -> str:
    return "\n".join(f"{f.check} | {f.where} | {f.message}" for f in report.wrong)


@pytest.mark.parametrize(
    "team",
    [
        clinic(),
        clinic(repeats=True),
        clinic(turns=Pipeline(order=("nurse", "doctor"), hand_back=True)),
        clinic(turns=Pipeline(order=("nurse", "doctor"), handoff="verdict", verdicts=("a", "b"))),
        clinic(roles=(with_budget(NURSE, calls=1, usd=2.0), with_budget(DOCTOR, tokens=10))),
        clinic(baselines={"first": Baseline(policies={"nurse": first_legal, "doctor": first_legal})}),
        rounds(3),
        at_once(3),
    ],
)
def test_a_sound_team_passes(team: Team) -> None:
    """Every turn protocol, with and without budgets: all is well, and every check says what it found."""
    report = check_team(team)
    assert report.ok, said(report)
    assert {f.check for f in report.findings} == {"form", "schemas", "missing", *CHECKS}
    assert "all is well" in str(report)


# -- planted faults


def speechless(world: Clinic) -> str:
    """ """
    return ""


def mistaken(world: Clinic) -> str:
    """Fail by mistake."""
    return {}["nothing"]  # a bug of the author's


def lying(world: Clinic) -> dict[str, float]:
    """Answer with a wrong type."""
    return {"celsius": "warm"}  # type: ignore[dict-item]


def unbounded(world: Clinic) -> list[Any]:
    """Answer with what is no JSON."""
    return [object()]


_CALLS = itertools.count()


def counting(world: Clinic) -> int:
    """Count over all episodes."""
    return next(_CALLS)


def changing(world: Clinic) -> str:
    """Change the scenario."""
    world.scenario.visible["touched"] = True  # type: ignore[attr-defined]
    return "done"


class Holding(Clinic):
    """Keeps the scenario itself."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.scenario = scenario


class Shared(Clinic):
    """Keeps what was given on the class: two sessions write into one another."""

    asked: list[int] = []  # noqa: RUF012

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        Shared.asked.clear()


def ask_shared(world: Shared) -> int:
    """Ask, and count how often it was asked."""
    world.asked.append(1)
    return len(world.asked)


class Telling(Clinic):
    """Shows the truth."""

    def look(self, agent: str) -> dict[str, str]:
        return {"hint": self.ill[:1]}


class Quoting(Clinic):
    """Shows a free text of the truth."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.story: str = scenario.truth["story"]

    def look(self, agent: str) -> str:
        return f"patient says: {self.story}"


class Exploding(Clinic):
    """Raises when it is made."""

    def __init__(self, scenario: Scenario) -> None:
        raise ZeroDivisionError("made of nothing")


class Moody(Clinic):
    """Draws chance that no seed decides."""

    rng = Random()

    def look(self, agent: str) -> float:
        return self.rng.random()


def with_story(split: str, seed: int, index: int) -> Scenario:
    made = generate(split, seed, index)
    return dataclasses.replace(made, truth={**made.truth, "story": "it hurts everywhere"})


def leaking(split: str, seed: int, index: int) -> Scenario:
    made = generate(split, seed, index)
    return dataclasses.replace(made, visible={"form": {"code": made.truth["ill"]}})


def quoted(split: str, seed: int, index: int) -> Scenario:
    made = with_story(split, seed, index)
    return dataclasses.replace(made, visible={"report": f"He said: {made.truth['story']}."})


def unseeded(split: str, seed: int, index: int) -> Scenario:
    return dataclasses.replace(generate(split, seed, index), visible={"age": Random().random()})


def one_for_all(split: str, seed: int, index: int) -> Scenario:
    made = generate("any", 0, index)
    return dataclasses.replace(made, id=f"{split}-{seed}/{index}")


def same_id(split: str, seed: int, index: int) -> Scenario:
    return dataclasses.replace(generate(split, seed, index), id=split + str(seed))


def no_json(split: str, seed: int, index: int) -> Scenario:
    return dataclasses.replace(generate(split, seed, index), visible={"age": {index}})


def failing(split: str, seed: int, index: int) -> Scenario:
    raise RuntimeError("the file is gone")


def making_nothing(split: str, seed: int, index: int) -> Scenario:
    return None  # type: ignore[return-value]


def leaving(*_: Any, **__: Any) -> Any:
    """Leave the whole process."""
    sys.exit(0)


def quitting(world: Clinic) -> str:
    """Leave the whole process."""
    sys.exit(0)


def falling(world: Clinic) -> str:
    """Call itself for ever."""
    return falling(world)


def flooding(world: Clinic) -> str:
    """Answer with two million characters."""
    return "x" * 2_000_000


def mirroring(world: Clinic) -> list[Any]:
    """Answer with a list that holds itself."""
    held: list[Any] = []
    held.append(held)
    return held


def dividing(world: Clinic) -> dict[str, float]:
    """Answer with what is no number."""
    return {"rate": math.nan}


class Arrayed(Clinic):
    """Says how it ended with an array."""

    def outcome(self) -> Any:
        return {"counts": np.arange(3)}, True


class Abandoned(Clinic):
    """Leaves the process when it is asked how it ended."""

    outcome = leaving


def nurse_with(*names: str, **more: Any) -> Any:
    return dataclasses.replace(NURSE, tools=names, **more)


def using(function: Callable[..., Any], **changes: Any) -> Team:
    """A clinic whose nurse has one more tool."""
    return clinic(
        tools=tools(tool(function)), roles=(nurse_with("take_temperature", function.__name__), DOCTOR), **changes
    )


def loosened() -> Team:
    found = tools()
    found["listen"] = dataclasses.replace(found["listen"], input_schema={"type": "object"})
    return clinic(tools=found, roles=(dataclasses.replace(NURSE, calls=(call("listen", to="heart"),)), DOCTOR))


def tool_as(name: str, max_turns: int = 64, **changes: Any) -> Team:
    found = tools()
    found[name] = dataclasses.replace(found[name], **changes)
    return clinic(tools=found, max_turns=max_turns, repeats=max_turns > 64)


def bad_calls(*calls: ToolCall) -> Team:
    return clinic(roles=(dataclasses.replace(NURSE, calls=calls), DOCTOR))


def late(world: Clinic, against: Literal["flu", "cold", "gout"]) -> str:
    """Treat, which never works."""
    raise ValueError("no medicine left")


FAULTS: dict[str, tuple[Team, str]] = {
    "role named twice": (clinic(roles=(NURSE, NURSE, DOCTOR)), "role nurse | two roles have this name"),
    "unknown tool": (clinic(roles=(nurse_with("xray"), DOCTOR)), "role nurse | its tool 'xray'"),
    "tool listed twice": (clinic(roles=(nurse_with("listen", "listen"), DOCTOR)), "lists tool 'listen' twice"),
    "tool under another name": (clinic(tools={**tools(), "cure": tool(treat)}), "tool cure | is filed under"),
    "reserved name": (clinic(tools=tools(tool(take_temperature, name="hand_over"))), "the name of a hand-over call"),
    "role without a turn": (clinic(turns=Pipeline(order=("doctor",))), "role nurse | never gets a turn"),
    "turn without a role": (clinic(turns=Pipeline(order=("nurse", "chief", "doctor"))), "'chief' is no role"),
    "two turns of a role": (clinic(turns=Pipeline(order=("nurse", "nurse", "doctor"))), "'nurse' stands there twice"),
    "budget of nothing": (clinic(roles=(with_budget(NURSE, calls=0), DOCTOR)), "budget of 0 calls"),
    "negative cost": (tool_as("listen", cost_usd=-1.0), "tool listen | costs -1.0 USD"),
    "no end": (clinic(turns=Pipeline(order=("doctor", "nurse"))), "role nurse | stands last, but no call"),
    "free arguments": (using(weigh), "role nurse | role nurse: tool weigh takes arguments"),
    "call of another's tool": (bad_calls(call("treat", against="flu")), "lists a call of 'treat'"),
    "ill-typed call": (bad_calls(call("listen", to="feet")), "its schema refuses"),
    "call listed twice": (bad_calls(call("listen", to="heart"), call("listen", to="heart")), "the same call twice"),
    "no verdicts": (clinic(turns=Pipeline(order=("nurse", "doctor"), handoff="verdict")), "names none"),
    "idle verdicts": (clinic(turns=Pipeline(order=("nurse", "doctor"), verdicts=("a",))), "but hands over notes"),
    "more rounds than turns": (clinic(turns=RoundRobin(order=("nurse", "doctor"), rounds=99)), "every episode is cut"),
    "half a baseline": (clinic(baselines={"b": Baseline(policies={"nurse": first_legal})}), "baseline b"),
    "stubborn baseline": (
        clinic(baselines={"b": Baseline(policies={"nurse": lambda _s, _r: 0, "doctor": first_legal})}, max_turns=9),
        "baseline b, scenario train-1/0 | nurse's call of take_temperature is refused",
    ),
    "no schema": (tool_as("listen", output_schema={"type": "text"}), "output schema is no JSON Schema"),
    "old schema": (tool_as("listen", output_schema={"$schema": "http://json-schema.org/draft-07/schema#"}), "draft-07"),
    "open schema": (loosened(), "tool listen | its input schema lets arguments through"),
    "silent tool": (tool_as("listen", description=" "), "tool listen | says nothing"),
    "no scenarios": (clinic(generate=None), "has none to play"),
    "failing generator": (clinic(generate=failing), "RuntimeError: the file is gone"),
    "unseeded scenarios": (clinic(generate=unseeded), "is another one when made again"),
    "same scenarios in both splits": (clinic(generate=one_for_all), "are the same"),
    "one id for all": (clinic(generate=same_id), "scenarios have this id"),
    "no JSON": (clinic(generate=no_json), "its visible part is not JSON"),
    "wrong type of case": (clinic(case_types={"visible": {"required": ["name"]}}), "breaks case_types"),
    "failing world": (clinic(world=Exploding), "ZeroDivisionError: made of nothing"),
    "generator of nothing": (clinic(generate=making_nothing), "the generator returned NoneType, not a Scenario"),
    "generator that exits": (clinic(generate=leaving), "making scenario 0: SystemExit: 0"),
    "world that exits": (clinic(world=leaving), "SystemExit: 0"),
    "outcome that exits": (clinic(world=Abandoned), "SystemExit: 0"),
    "tool that exits": (using(quitting), "SystemExit: 0"),
    "outcome with an array": (clinic(world=Arrayed), "the outcome is not JSON: Object of type ndarray"),
    "endless recursion": (using(falling), "tool falling fails on {}: RecursionError"),
    "flood": (using(flooding), "tool flooding | its answer has 2,000,002 characters"),
    "answer that holds itself": (using(mirroring), "tool mirroring | "),
    "answer that is no number": (
        using(dividing),
        "schema at $.rate: nan is no number that JSON can say",
    ),
    "role that leaves its folder": (
        clinic(roles=(NURSE, dataclasses.replace(DOCTOR, name="../b")), turns=Pipeline(order=("nurse", "../b"))),
        "role '../b' | '../b' cannot name files and streams",
    ),
    "no way to end": (tool_as("treat", run=late), "no play ends an episode"),
    "buggy tool": (using(mistaken), "tool mistaken fails on {}: KeyError"),
    "broken answer": (using(lying), "tool lying | its answer breaks its own schema"),
    "answer that is no JSON": (using(unbounded), "tool unbounded | nurse tool_answered"),
    "count over all episodes": (using(counting), "played again with the same calls"),
    "shared between sessions": (using(ask_shared, world=Shared, repeats=True), "they share state"),
    "changed scenario": (using(changing, world=Holding), "changes the scenario it was made from"),
    "unseeded world": (clinic(world=Moody), "played again with the same calls"),
    "truth shown": (clinic(world=Telling), "changes with the hidden truth"),
    "truth quoted": (clinic(world=Quoting, generate=with_story), "quotes truth.story"),
    "truth in a visible field": (clinic(generate=leaking), "truth.ill stands in visible.form.code"),
    "truth in a visible text": (clinic(generate=quoted), "the text of truth.story stands"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    """Each is named, with its place; and the report as text shows it."""
    team, message = FAULTS[fault]
    report = check_team(team, episodes=8)
    assert message in said(report), said(report) or "nothing found"
    assert not report.ok
    assert "WRONG" in str(report)


def test_every_fault_comes_with_a_place_and_a_remedy() -> None:
    """A finding that helps nobody is no finding."""
    found = [f for team, _ in FAULTS.values() for f in check_team(team, episodes=3).wrong]
    assert len(found) >= len(FAULTS)
    bare = {f.message for f in found if not (f.where or f.remedy)}
    assert bare <= {"not played: correct its form first"}


def test_the_check_of_a_team_that_never_ends_a_case_ends() -> None:
    """However many turns it asks for."""
    report = check_team(tool_as("treat", run=late, max_turns=10**9), episodes=4)
    assert "no play ends an episode: all are cut at 256 decisions" in said(report)


def test_what_changes_by_itself_does_not_change_with_the_truth() -> None:
    """A view that no seed decides has one fault, and one remedy: not that of a truth that is shown."""
    report = check_team(clinic(world=Moody), episodes=8)
    assert "played again with the same calls" in said(report)
    assert "hidden truth" not in said(report)


def test_the_users_own_line_is_named() -> None:
    """What the team's code raises is reported with its file and line, not with the engine's."""
    finding = next(f for f in check_team(FAULTS["buggy tool"][0], episodes=2).wrong if "KeyError" in f.message)
    line = next(
        n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "a bug of the author's" in text
    )
    assert finding.where == f"{__file__}:{line}"
    made = next(f for f in check_team(FAULTS["failing world"][0], episodes=2).wrong if "made of nothing" in f.message)
    assert made.where.startswith(__file__)


def test_what_the_opening_is_meant_to_reveal_may_be_revealed() -> None:
    """A truth named in opening_reveals is no leak."""
    revealed = frozenset({"ill", "story"})
    for name in ("truth shown", "truth quoted", "truth in a visible field", "truth in a visible text"):
        report = check_team(dataclasses.replace(FAULTS[name][0], opening_reveals=revealed), episodes=8)
        assert report.ok, said(report)


def test_a_team_with_scenarios_from_a_file_is_checked_on_them(tmp_path: Path) -> None:
    """No generator is needed where there is a file."""
    file = tmp_path / "cases.jsonl"
    lines = [{"visible": {"age": k}, "truth": {"ill": ill}} for k, ill in enumerate(("flu", "cold", "gout"))]
    file.write_text("\n".join(map(json.dumps, lines)))
    report = check_team(clinic(generate=None), Listed(read_scenarios(file), seed=0))
    assert report.ok, said(report)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_teams_that_are_shipped_pass(name: str) -> None:
    """What is asked of others holds for our own."""
    report = check_team(load_team(name, {}), episodes=6)
    assert report.ok, str(report)


# -- what is still missing


def to_do(team: Team) -> list[str]:
    return [f"{f.where}: {f.message}" for f in check_team(team, episodes=2).missing]


NURSE_CALLS = (ToolCall(tool=NURSE.tools[0]),)
UNFINISHED = {
    "no brief": (clinic(roles=(dataclasses.replace(NURSE, brief=" "), DOCTOR)), "role nurse: its brief is still"),
    "a brief to do": (
        clinic(roles=(dataclasses.replace(NURSE, brief="TODO: say what it is for"), DOCTOR)),
        "role nurse: its brief is still",
    ),
    "no tools": (clinic(roles=(dataclasses.replace(NURSE, tools=()), DOCTOR)), "role nurse: has no tools"),
    "no choice": (
        rounds(2, repeats=True, roles=(dataclasses.replace(NURSE, calls=NURSE_CALLS), DOCTOR)),
        "role nurse: has one call only",
    ),
    "a tool nobody has": (
        clinic(roles=(NURSE, DOCTOR), tools={**tools(), "spare": dataclasses.replace(tools()["treat"], name="spare")}),
        "tool spare: no role has it",
    ),
    "a docstring to do": (tool_as("treat", description="TODO"), "tool treat: its description is still to be written"),
    "no terms": (clinic(terms={}), ": no reward terms of its own"),
    "no baselines": (clinic(baselines={"random": Baseline()}), ": no rule to compare with"),
}
"""Teams that somebody is still writing, and what he is told."""


@pytest.mark.parametrize("lack", UNFINISHED)
def test_what_a_half_written_team_lacks_is_told(lack: str) -> None:
    """As something to do, with a remedy; that nothing is wrong is told too."""
    team, told = UNFINISHED[lack]
    report = check_team(team, episodes=2)
    assert any(found.startswith(told) for found in to_do(team)), to_do(team)
    assert all(f.remedy and f.ok for f in report.missing)
    assert "still to do" in str(report).splitlines()[0]
    assert "TODO" in str(report)


def test_all_that_is_missing_is_told_at_once() -> None:
    """Of every role, also where the form is wrong: who writes a team wants the whole list."""
    empty = (Role(name="a", brief="", tools=()), Role(name="b", brief="", tools=()))
    team = clinic(roles=empty, turns=Pipeline(order=("a", "b")), terms={}, baselines={})
    told = to_do(team)
    assert [t for t in told if "brief" in t] == [
        f"role {n}: its brief is still to be written: language models read it" for n in "ab"
    ]
    assert {"role a: has no tools", "role b: has no tools", ": no reward terms of its own"} <= set(told)
    assert not check_team(team).ok


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_is_missing_in_the_teams_that_are_shipped(name: str) -> None:
    """Or else the list would be noise."""
    assert to_do(load_team(name, {})) == []


# -- the command


def test_a_module_alone_means_its_team(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the folder that it lies in, and from outside by a folder of its name; the same as written out."""
    (tmp_path / "lone_clinic").mkdir()
    file = tmp_path / "lone_clinic" / "lone_clinic.py"
    file.write_text("from tests.envs.toys import clinic as team\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    assert main(["lone_clinic", "--episodes", "2"]) == 0
    assert capsys.readouterr().out.startswith("team clinic: all is well")
    del sys.modules["lone_clinic"]


def test_the_command_prints_a_table_and_exits_0_or_4(capsys: pytest.CaptureFixture[str]) -> None:
    """0 when all is well, 4 when something is wrong."""
    assert main(["tests.envs.toys:clinic", "--episodes", "3"]) == 0
    assert "team clinic: all is well" in capsys.readouterr().out
    assert main(["tests.envs.toys:clinic", "--args", '{"max_turns": 1}', "--episodes", "3"]) == 4
    out = capsys.readouterr().out
    assert "WRONG  play" in out
    assert "-> raise max_turns" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tests.envs.toys"], "has no 'team', and no team of another name: name it as module:attribute"),
        (["tests.envs.toys:nobody"], "has no 'nobody'"),
        (["tests.envs.nowhere:team"], "importing tests.envs.nowhere"),
        (["tests.envs.toys:tools"], "makes a dict, not a Team"),
        (["tests.envs.toys:clinic", "--args", "{"], "Expecting"),
        (["tests.envs.toys:clinic", "--args", '{"colour": 1}'], "colour"),
        (["tests.envs.toys:clinic", "--scenarios", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_what_is_no_team_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, one line, no traceback."""
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_it_runs_as_a_module() -> None:
    """``python -m envs.check package.module:team`` is all that an author needs."""
    command = [sys.executable, "-W", "error", "-m", "envs.check", "tests.envs.toys:clinic", "--episodes", "2"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ})
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout


def test_loading_names_what_is_missing() -> None:
    """As a function too."""
    with pytest.raises(TeamError, match="has no 'nobody'"):
        load_team("tests.envs.toys:nobody", {})
