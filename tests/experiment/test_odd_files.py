"""Files that are odd in ways that nobody plans: each is refused at once, in words that help."""

import os
from pathlib import Path

import pytest

from assembly.problems import Refused
from assembly.team_check import Known, accept
from rewards.terms import TERMS

HERE = Path(__file__).parent / "broken"
SOUND = """name: sound
team: {use: two_seats:team}
policies: {asker: {kind: encoder}, teller: {kind: encoder}}
rewards: {terms: [{use: paid}]}
"""


def problems(file: Path, *sets: str) -> list[str]:
    """What is said of the file, with each place."""
    try:
        accept(file, sets, Known(TERMS))
    except Refused as refused:
        return [" ".join(line.split()) for line in str(refused).splitlines()[1:]]
    return []


@pytest.fixture
def sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with which nothing is wrong."""
    monkeypatch.syspath_prepend(str(HERE))
    file = tmp_path / "sound.yaml"
    file.write_text(SOUND)
    assert problems(file) == []
    return file


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('"\\e[31mred\\u202e": 0', "line 5 \\x1b[31mred\\u202e: unknown key"),
        ("\u0440\u0440o: {lr: 1}", "did you mean 'ppo'? ('\u0440' is CYRILLIC SMALL LETTER ER)"),
        ("s\u0435\u0435d: 1", "did you mean 'seed'? ('\u0435' is CYRILLIC SMALL LETTER IE)"),
        ("seed: ${NO:-${SUCH:-3}}", "line 5 seed: ${NO:-${SUCH:-3}} has a variable within a variable"),
        ("seed: 1\0", "line 5 is not YAML: the character U+0000 may not stand in it"),
    ],
)
def test_what_cannot_be_seen_is_named(sound: Path, line: str, said: str) -> None:
    """Control characters are written out, look-alikes named, and each has its line."""
    sound.write_text(f"{SOUND}{line}\n", encoding="utf-8")
    (only,) = problems(sound)
    assert said in only


def test_a_merge_is_told_as_one_and_nothing_else(sound: Path) -> None:
    """YAML 1.2 knows none: the key is named, not what is missing without it."""
    sound.write_text(SOUND.replace("asker: {kind: encoder}, teller: {", "asker: &x {kind: encoder}, teller: {<<: *x, "))
    sound.write_text(sound.read_text().replace("<<: *x, kind: encoder", "<<: *x"))
    (only,) = problems(sound)
    assert only.startswith("line 3 policies.teller: '<<' is not taken")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (".=1", "--set .=1 wants dotted.key=value"),
        ("a..b=1", "--set a..b=1 wants dotted.key=value"),
        ("ppo.lr=-1", "--set ppo.lr ppo.lr: -1 must be at least 0"),
        ("ppo.train_batch_size=99999999999999999999", "must be at most 2,147,483,647 (what 32 bits hold)"),
        ("resources.env_runners=1000000", "1,000,000 would take some 200 TB of memory for processes that play"),
        ("resources.envs_per_runner=2000000000", "2,000,000,000 would take some 20 TB of memory"),
        ("resources.gpus=99999999999999999999", "at most 1024"),
        ("policies.asker.hidden=[100000000]", "51,200,000,000 weights with their optimizer; this machine has"),
        ("policies.asker.feature_size=999999999999", "must be at most 2,147,483,647"),
        ("scenarios.eval.count=99999999999999999999", "must be at most 2,147,483,647"),
        ("team.use=nope", "'nope' is not of the form wanted: `package.module:attribute`"),
        ("team.use='two_seats..x:team'", "'two_seats..x:team' is not of the form wanted: `package.module:attribute`"),
        ("team={pettingzoo: nope}", "is not of the form wanted: The dotted name of an environment's module"),
        ("rewards.audit.checks=[nope]", "'nope' is not of the form wanted: package.module:attribute"),
        ("rewards.audit.checks=['os:getcwd']", "os:getcwd cannot be called so; an own check is a function of Material"),
        ("rewards.terms=[{use: 'os:getcwd'}]", "rewards.terms.0.use: makes no reward term (runtime.terms.term), but"),
        ("rewards.terms=[{use: 'os..path:x'}]", "'os..path:x' is not of the form package.module:attribute"),
        ("policies.asker={kind: scripted, use: 'os:getcwd'}", "policies.asker.use: os:getcwd cannot be called so"),
    ],
)
def test_what_cannot_be_meant_is_refused(sound: Path, key: str, said: str) -> None:
    """Once, at the --set that said it, with the reason."""
    found = [p for p in problems(sound, key) if said in p]
    assert len(found) == 1, problems(sound, key)
    assert found[0].startswith("--set ")


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """Nobody may ever write into it, so it is not waited for."""
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    (only,) = problems(pipe)
    assert "cannot be read: it is no file but a pipe or a device" in only


def test_cases_that_no_world_can_be_made_of_are_refused(sound: Path, tmp_path: Path) -> None:
    """Before anything is played: with the user's own line."""
    (tmp_path / "strict.py").write_text(
        "import dataclasses\nimport two_seats\n\n\n"
        "def world(scenario):\n    scenario.truth['kind']\n    return two_seats.team().world(scenario)\n\n\n"
        "def team():\n    return dataclasses.replace(two_seats.team(), world=world)\n"
    )
    cases = tmp_path / "cases.jsonl"
    cases.write_text("\n".join(f'{{"visible": {{"n": {n}}}, "truth": {{"kind": 1}}}}' for n in range(40)))
    settings = ("team.use='strict:team'", f"scenarios={{file: {cases}}}")
    assert problems(sound, *settings) == []
    cases.write_text(cases.read_text() + '\n{"visible": {"n": 40}, "truth": {}}\n')
    (only,) = problems(sound, *settings)
    assert f"scenario cases:41: making its world raised KeyError at {tmp_path / 'strict.py'}:6: 'kind'" in only
