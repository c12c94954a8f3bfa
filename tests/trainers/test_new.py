"""A new team is written whole, works at once, and is refused where its name or place is taken."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import trainers.new as module
from envs.check import check_team, load_team
from trainers.new import main

ROOT = Path(__file__).parents[2]
RUFF = Path(sys.executable).with_name("ruff")


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def python(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return run(folder, sys.executable, "-m", *words)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a new team called ``bakery``."""
    folder = tmp_path_factory.mktemp("new")
    assert main(["bakery", "--to", str(folder)]) == 0
    return folder / "bakery"


def test_what_is_written(written: Path) -> None:
    """The team, its experiment, its tests, how to go on; and nothing of the template's own name."""
    names = {p.name for p in written.iterdir() if p.is_file()}
    assert names == {"bakery.py", "bakery.yaml", "test_bakery.py", "README.md", "pyproject.toml"}
    assert not [p for p in written.iterdir() if p.is_file() and module.PLACEHOLDER in p.read_text()]
    assert [p.name for p in written.parent.iterdir()] == ["bakery"]


def test_its_check_finds_nothing_wrong_or_missing(written: Path) -> None:
    """Inside the folder, and from outside by the folder's name."""
    for folder in (written, written.parent):
        checked = python(folder, "envs.check", "bakery", "--episodes", "5")
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert checked.stdout.startswith("team bakery: all is well\n"), checked.stdout


def test_its_own_tests_pass(written: Path) -> None:
    """And say what the team is: every one has its promise."""
    ran = python(written, "pytest", "-q", "-p", "no:cacheprovider")
    assert ran.returncode == 0, ran.stdout
    assert "12 passed" in ran.stdout


def test_its_own_tests_can_fail(written: Path, tmp_path: Path) -> None:
    """A world that calls everything a success, a look that tells nothing: each is noticed."""
    for was, becomes in (("self.changed == self.broken", "True"), ("return SIGNS[world.broken]", 'return "it is hot"')):
        broken = shutil.copytree(written, tmp_path / f"{len(was)}", ignore=shutil.ignore_patterns("__pycache__"))
        text = (broken / "bakery.py").read_text()
        assert was in text
        (broken / "bakery.py").write_text(text.replace(was, becomes))
        assert python(broken, "pytest", "-q", "-x", "-p", "no:cacheprovider").returncode == 1


def test_it_is_well_written(written: Path) -> None:
    """By its own rules and by ruff's."""
    for more in ((), ("--isolated",)):
        looked = run(written, str(RUFF), "check", "--no-cache", *more, ".")
        assert looked.returncode == 0, looked.stdout
    assert run(written, str(RUFF), "format", "--no-cache", "--check", ".").returncode == 0


def test_its_reward_is_honest(written: Path) -> None:
    """The audit finds no error."""
    audited = python(written, "rewards.audit", "bakery.yaml")
    assert audited.returncode == 0, audited.stdout + audited.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("ray")
def test_it_trains_at_once(written: Path) -> None:
    """Through audit and gates, to what the good rule earns."""
    ran = python(written, "trainers.run", "bakery.yaml")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "score" in ran.stdout
    score = next(line for line in ran.stdout.splitlines() if line.startswith("│ score"))
    assert float(score.split("│")[2]) > 0.9, score


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("3d", "is no name of a team"),
        ("a-b", "is no name of a team"),
        ("a b", "is no name of a team"),
        ("../up", "is no name of a team"),
        ("/etc/x", "is no name of a team"),
        (".hidden", "is no name of a team"),
        ("", "is no name of a team"),
        ("naïve", "is no name of a team"),
        ("x" * 49, "is no name of a team"),
        ("class", "is a word of Python's own"),
        ("match", "is a word of Python's own"),
        ("json", "is a module of Python's standard library"),
        ("rewards", "is a package of this project"),
        ("numpy", "can be imported already"),
    ],
)
def test_a_bad_name_is_refused(name: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason, and nothing is written."""
    assert main([name, "--to", str(tmp_path)]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a folder, nor a file, nor a link; and a file is no place for a folder."""
    (tmp_path / "bakery").mkdir()
    (tmp_path / "bakery" / "mine.txt").write_text("mine")
    (tmp_path / "florist").write_text("mine")
    (tmp_path / "grocer").symlink_to(tmp_path / "nowhere")
    for name in ("bakery", "florist", "grocer"):
        assert main([name, "--to", str(tmp_path)]) == 2
        assert "is there already" in capsys.readouterr().err
    assert main(["tailor", "--to", str(tmp_path / "florist")]) == 2
    assert "is a file" in capsys.readouterr().err
    assert (tmp_path / "bakery" / "mine.txt").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bakery", "florist", "grocer"]


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in the middle, here a template that cannot be read to its end, leaves no folder."""
    broken = shutil.copytree(module.TEMPLATE, tmp_path / "template")
    (broken / "z.py").write_bytes(b"\xff\xfe")
    monkeypatch.setattr(module, "TEMPLATE", broken)
    with pytest.raises(UnicodeDecodeError):
        module.write("bakery", tmp_path / "out" / "bakery")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_refusal_takes_no_time(tmp_path: Path) -> None:
    """Under a second, as does help: nothing heavy is loaded."""
    for words in (["json"], ["--help"]):
        began = time.monotonic()
        ended = python(tmp_path, "trainers.new", *words)
        assert time.monotonic() - began < 1.0
        assert ended.returncode == (0 if words == ["--help"] else 2), ended.stderr


def test_the_template_itself_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a team as it stands, looked at here with everything else."""
    monkeypatch.syspath_prepend(str(module.TEMPLATE))
    report = check_team(load_team("my_team", {}), episodes=5)
    assert report.ok
    assert not report.missing
