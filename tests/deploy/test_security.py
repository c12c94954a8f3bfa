"""What docs/security.md says is never done is done nowhere, and the tests that it names are there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from assembly.loading import draft
from assembly.problems import Refused
from serving.loading import load

ROOT = Path(__file__).parents[2]
PACKAGES = ("assembly", "envs", "policies", "rewards", "runtime", "serving", "telemetry", "trainers")
BANDIT = ROOT / "experiments" / "bandit.yaml"
DANGEROUS = {
    "eval",
    "exec",
    "os.system",
    "os.popen",
    "pickle.load",
    "pickle.loads",
    "cloudpickle.load",
    "cloudpickle.loads",
    "joblib.load",
    "torch.load",
    "yaml.unsafe_load",
    "marshal.loads",
}
ALLOWED = {("envs/checks/repeat.py", "pickle.loads")}
"""It reads what it wrote in the same line, to see whether an observation can be pickled."""


def calls(text: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call of a module, with its written name (``a.b``)."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def ours() -> Iterator[tuple[str, str, ast.Call]]:
    """Every call in the packages: file, name, node."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for name, node in calls(path.read_text()):
                yield path.relative_to(ROOT).as_posix(), name, node


def shells(node: ast.Call) -> bool:
    return any(k.arg == "shell" and ast.unparse(k.value) != "False" for k in node.keywords)


def test_nothing_from_outside_is_run() -> None:
    """No shell, no eval or exec, no unpickling, in any module."""
    found = {(file, name) for file, name, node in ours() if name in DANGEROUS or shells(node)}
    assert found <= ALLOWED


def test_what_is_dangerous_would_be_found() -> None:
    """The look above sees what it looks for."""
    ((named, _), (_, shelled)) = calls("pickle.loads(b''), run('ls', shell=True)")
    assert named in DANGEROUS
    assert shells(shelled)


def test_no_model_is_downloaded_by_itself() -> None:
    """Every way to a model's files says that only those on this machine count."""
    wanted = [
        (file, ast.unparse(node))
        for file, name, node in ours()
        if name.endswith((".from_pretrained", "snapshot_download")) and file.startswith("policies/")
    ]
    assert wanted
    assert [at for at in wanted if "local_files_only=True" not in at[1] and "**asked" not in at[1]] == []


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/b", "..", ""])
def test_an_experiments_name_is_no_path(name: str) -> None:
    """It becomes a directory below `runs/`, and nowhere else."""
    with pytest.raises(Refused, match="name"):
        draft(BANDIT, [f"name={name!r}"]).accepted()


@pytest.mark.parametrize("name", ["../x", "a/b", "a:b", "..", ""])
def test_a_served_teams_name_is_no_path_and_no_key(name: str, tmp_path: Path) -> None:
    """It becomes part of paths, of addresses and of keys in Redis."""
    file = tmp_path / "serving.yaml"
    file.write_text(f'teams: {{"{name}": {{registry: registry}}}}\n')
    with pytest.raises(Refused, match="teams"):
        load(file)


def test_aliases_cannot_fill_the_memory(tmp_path: Path) -> None:
    """Nine lines that would be a thousand million values are refused as such."""
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    rows += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    file = tmp_path / "many.yaml"
    file.write_text("\n".join(rows))
    with pytest.raises(Refused, match="values, with aliases written out"):
        draft(file).accepted()


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """Some megabytes are no experiment."""
    file = tmp_path / "large.yaml"
    file.write_text("name: " + "x" * 2_000_000)
    with pytest.raises(Refused, match="larger than"):
        draft(file).accepted()


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.getcwd []", "!!python/name:os.system ''"])
def test_yaml_makes_no_objects(tag: str, tmp_path: Path) -> None:
    """A tag that would call something is a mistake of the file."""
    file = tmp_path / "tagged.yaml"
    file.write_text(f"name: {tag}\n")
    with pytest.raises(Refused, match=r"the tag '!!python/.* is not taken"):
        draft(file).accepted()


def test_the_tests_that_the_page_names_are_there() -> None:
    """A promise whose test was renamed or removed is noticed."""
    page = (ROOT / "docs" / "security.md").read_text()
    file, missing = "", []
    for named, test in re.findall(r"`(tests/[\w/]+\.py|…)(?:::(\w+))?`", page):
        file = named if named != "…" else file
        there = (ROOT / file).is_file() and (not test or f"def {test}(" in (ROOT / file).read_text())
        missing += [] if there else [f"{file}::{test}"]
    assert missing == []
