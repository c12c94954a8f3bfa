"""Run directories: one process each, looked over before anything is done, and a remedy for what is wrong with them."""

import contextlib
import errno
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assembly.blame import disk
from telemetry.durable import RecordLost
from tests.trainers.commands import SHOP
from trainers.checkpoints import Checkpoints, NoCheckpoint, TrainerState, check
from trainers.run import main
from trainers.run_directory import Unusable, held, looked_over, new_directory, without_damage


def refusal(*args: str | Path) -> str:
    """What the command says when it refuses: exit 2, in words."""
    faults, path = io.StringIO(), [*sys.path]
    with contextlib.redirect_stderr(faults):
        code = main([str(a) for a in args])
    sys.path[:] = path
    assert code == 2, faults.getvalue()
    assert "Traceback" not in faults.getvalue()
    return faults.getvalue()


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run that has three checkpoints."""
    directory = tmp_path / "begun"
    directory.mkdir()
    shutil.copy(SHOP, directory / "experiment.yaml")
    (directory / "origin.txt").write_text(f"{SHOP.parent}\n")
    kept = Checkpoints(directory / "checkpoints", keep=3)
    for iteration in (2, 4, 6):
        kept.save(TrainerState(iteration=iteration), _algorithm)
    return directory


def _algorithm(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "state.pkl").write_bytes(b"weights" * 100)


def test_runs_of_one_second_get_a_directory_each(tmp_path: Path) -> None:
    """However many begin at once, no two share one."""
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: new_directory(tmp_path, "x"), range(64)))
    assert len(set(made)) == 64
    assert all(m.is_dir() for m in made)


def test_a_directory_has_one_process(begun: Path) -> None:
    """--resume while a run is there: exit 2 with its process id, and nothing is touched."""
    before = sorted(begun.rglob("*"))
    with held(begun):
        assert f"another process (pid {os.getpid()}) is running there" in refusal("--resume", begun)
    assert sorted(p for p in begun.rglob("*") if p.name != "run.lock") == before


def test_a_killed_process_holds_nothing(begun: Path) -> None:
    """The lock goes with the process, however it ends."""
    program = f"""
import sys, time
from pathlib import Path
from trainers.run_directory import held
with held(Path({str(begun)!r})):
    print("held", flush=True)
    time.sleep(60)
"""
    other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert other.stdout
    try:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(Unusable, match=f"pid {other.pid}"), held(begun):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait()
        with held(begun):
            assert (begun / "run.lock").read_text() == f"{os.getpid()}\n"
    finally:
        other.kill()
        other.wait()
        other.stdout.close()


def test_a_refused_run_leaves_no_directory(tmp_path: Path) -> None:
    """Nothing was written there, so nothing stays; a directory with a run in it does."""
    empty, used = new_directory(tmp_path, "x"), new_directory(tmp_path, "x")
    with pytest.raises(RuntimeError), held(empty):
        raise RuntimeError
    (used / "experiment.yaml").write_text("name: x\n")
    with pytest.raises(RuntimeError), held(used):
        raise RuntimeError
    assert not empty.exists()
    assert used.exists()


def test_a_directory_that_is_held_stays_even_while_it_is_empty(tmp_path: Path) -> None:
    """Whoever is refused there takes nothing away from the run that has just begun."""
    directory = new_directory(tmp_path, "x")
    with held(directory):
        with pytest.raises(Unusable, match="is running there"), held(directory):
            pass
        assert directory.exists()
        (directory / "experiment.yaml").write_text("name: x\n")
    assert directory.exists()


@pytest.mark.parametrize("out", ["a_file", "a_file/below", "/proc/nowhere", "nul\0"])
def test_a_place_where_nothing_can_be_made_is_refused(tmp_path: Path, out: str) -> None:
    """--out that is a file, or below one, or in no real file system: exit 2 with the reason."""
    (tmp_path / "a_file").write_text("")
    said = refusal(SHOP, "--out", tmp_path / out)
    assert "no run directory can be made there: " in said
    assert (tmp_path / "a_file").read_text() == ""


def test_out_has_no_effect_on_a_resumed_run(begun: Path, tmp_path: Path) -> None:
    """So it is not taken in silence."""
    assert "--out has no effect with --resume" in refusal("--resume", begun, "--out", tmp_path)


SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "nothing there": (shutil.rmtree, "is not a run directory"),
    "empty": (lambda d: [shutil.rmtree(d), d.mkdir()], "is not a run directory"),
    "no origin": (lambda d: (d / "origin.txt").unlink(), "origin.txt: is missing or empty; write the folder"),
    "empty origin": (lambda d: (d / "origin.txt").write_text(""), "origin.txt: is missing or empty"),
    "binary origin": (lambda d: (d / "origin.txt").write_bytes(b"\xff"), "origin.txt: cannot be read"),
    "torn preparation": (lambda d: (d / "prepared.json").write_text("{"), "prepared.json: cannot be read"),
    "torn experiment": (lambda d: (d / "experiment.yaml").write_text("name: ["), "is not YAML"),
}


@pytest.mark.parametrize(("spoil", "words"), SPOILT.values(), ids=SPOILT.keys())
def test_a_run_that_cannot_go_on_is_refused(begun: Path, spoil: Callable[[Path], Any], words: str) -> None:
    """Exit 2, what is wrong, and what to do."""
    spoil(begun)
    assert words in refusal("--resume", begun)


def _torn(checkpoint: Path) -> None:
    (checkpoint / "trainer.json").write_text('{"iteration": 6, "env_')


def _newer(checkpoint: Path) -> None:
    (checkpoint / "trainer.json").write_text('{"iteration": 6, "what_comes_next": 1}')


def _truncated(checkpoint: Path) -> None:
    file = checkpoint / "algorithm" / "state.pkl"
    file.write_bytes(file.read_bytes()[:100])


def _lacking(checkpoint: Path) -> None:
    (checkpoint / "algorithm" / "state.pkl").unlink()


@pytest.mark.parametrize("spoil", [_torn, _newer, _truncated, _lacking])
def test_an_older_good_checkpoint_is_used_in_place_of_a_damaged_one(begun: Path, spoil: Callable[[Path], None]) -> None:
    """It is said so, and the damaged one is set aside where no later save meets it."""
    spoil(begun / "checkpoints" / "000006")
    (told,) = without_damage(begun)
    assert "000006 cannot be used: " in told
    assert "the one before it is used" in told
    kept = Checkpoints(begun / "checkpoints", keep=3)
    assert kept.last().state.iteration == 4
    assert (begun / "checkpoints" / "damaged-000006").is_dir()
    assert without_damage(begun) == []
    kept.save(TrainerState(iteration=6), _algorithm)
    assert kept.last().state.iteration == 6


def test_a_run_whose_checkpoints_are_all_damaged_is_refused(begun: Path) -> None:
    """To begin anew would throw it away: exit 2, with each reason, and nothing is moved."""
    for checkpoint, spoil in zip(sorted((begun / "checkpoints").iterdir()), (_torn, _truncated, _lacking), strict=True):
        spoil(checkpoint)
    said = refusal("--resume", begun)
    for words in (
        "000002: trainer.json",
        "000004: algorithm/state.pkl is not what",
        "000006: algorithm/state.pkl is",
    ):
        assert words in said
    assert len(list((begun / "checkpoints").glob("0*"))) == 3


def test_an_older_checkpoint_without_a_list_of_its_contents_is_taken(begun: Path) -> None:
    """Runs that began before there were such lists go on."""
    for checkpoint in (begun / "checkpoints").iterdir():
        (checkpoint / "contents.json").unlink()
    assert without_damage(begun) == []
    assert Checkpoints(begun / "checkpoints", keep=3).last().state.iteration == 6


def test_a_list_of_contents_that_is_none_is_damage(begun: Path) -> None:
    """Torn, or of another kind."""
    for text in ("{", "[]", json.dumps({"algorithm/state.pkl": 3})):
        (begun / "checkpoints" / "000006" / "contents.json").write_text(text)
        with pytest.raises(NoCheckpoint):
            check(begun / "checkpoints" / "000006")


def test_a_run_in_good_order_says_where_its_modules_lie(begun: Path) -> None:
    """The folder of the file it began with."""
    assert looked_over(begun) == SHOP.parent


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/full/x"), "cannot be written: /full/x: No space left"),
        (OSError(errno.EFBIG, "Error writing bytes"), "cannot be written: Error writing bytes"),
        (
            sqlite3.OperationalError("database or disk is full"),
            "a database cannot be written: database or",
        ),
        (RecordLost("writing /full/y", "[Errno 28] No space left on device"), None),
        (FileNotFoundError(errno.ENOENT, "No such file", "/nowhere"), None),
    ],
)
def test_a_disk_that_takes_no_more_is_told(error: Exception, said: str | None) -> None:
    """What the disk refused, and where: no traceback. What is no trouble of the disk's is none."""
    found = disk(error)
    assert found is None if said is None else found is not None and said in found
