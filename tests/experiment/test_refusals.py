"""A broken file is refused once and completely: place, key, value found, reason, remedy."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from assembly.loading import load
from assembly.problems import Problem, Refused
from assembly.team_check import Known, accept
from rewards.terms import TERMS

BROKEN = sorted((Path(__file__).parent / "broken").glob("*.yaml"))
KNOWN = Known({"solved": TERMS["solved"]})


@pytest.mark.parametrize("file", BROKEN, ids=lambda f: f.stem)
def test_a_broken_file_is_refused_with_everything_its_first_lines_say(file: Path) -> None:
    """Each file in broken/ says in comments what its refusal holds, and how many problems there are."""
    text = file.read_text()
    expected = re.findall(r"^# refused: (.*)$", text, re.MULTILINE)
    with pytest.raises(Refused) as caught:
        accept(file, [], KNOWN)
    report = str(caught.value)
    for fragment in expected:
        assert " ".join(fragment.split()) in " ".join(report.split()), report
    assert f"# problems: {len(caught.value.problems)}\n" in text, report
    assert "Traceback" not in report


def test_a_report_looks_as_promised() -> None:
    """Line, dotted key and message stand in columns under the file's name, in the file's order."""
    with pytest.raises(Refused) as caught:
        accept(BROKEN[0].parent / "three_at_once.yaml", [], KNOWN)
    first, *rest = str(caught.value).splitlines()
    assert first == "three_at_once.yaml has 3 problems:"
    assert [line.split()[:2] for line in rest] == [["line", "8"], ["line", "14"], ["line", "15"]]
    assert len({re.search(r"\d+ +", line).end() for line in rest if re.search(r"\d+ +", line)}) == 1  # type: ignore[union-attr]


def test_a_refusal_survives_pickling() -> None:
    """Ray carries refusals between processes."""
    refused = Refused("x.yaml", [Problem("ppo.lr", "is odd", "line 3", 3)])
    again = pickle.loads(pickle.dumps(refused))  # noqa: S301 - our own bytes
    assert str(again) == str(refused) == "x.yaml has 1 problem:\n  line 3   ppo.lr: is odd"
    assert again.problems == refused.problems


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    """Missing, empty, binary, huge and deeply nested files are refused with a reason."""
    cases = {
        "empty": b"",
        "binary": b"name: \xff\xfe\n",
        "huge": b"name: x\n" * 200_000,
        "deep": b"[" * 3000,
        "control": b"name: \x01\n",
        "list": b"- name: x\n",
    }
    for name, content in cases.items():
        file = tmp_path / f"{name}.yaml"
        file.write_bytes(content)
        with pytest.raises(Refused):
            load(file)
    for nothing in (tmp_path / "missing.yaml", tmp_path):
        with pytest.raises(Refused, match="cannot be read"):
            load(nothing)


def test_a_refusal_shows_no_password(tmp_path: Path) -> None:
    """What stands between :// and @ of an address is not printed."""
    file = tmp_path / "x.yaml"
    file.write_text("redis: http://user:secret@host:1\n")
    with pytest.raises(Refused) as caught:
        load(file)
    assert "secret" not in str(caught.value)
    assert "http://***@host:1" in str(caught.value)


def test_a_refusal_needs_no_heavy_import() -> None:
    """Refusing a file imports neither Ray nor torch, sklearn, gymnasium or pettingzoo."""
    program = f"""
import sys
from assembly.problems import Refused
from assembly.team_check import Known, accept
from rewards.terms import TERMS
for name in ("three_at_once", "pettingzoo_of_another_version", "roles_that_are_not_there"):
    try:
        accept({str(BROKEN[0].parent)!r} + "/" + name + ".yaml", [], Known(TERMS))
    except Refused:
        pass
heavy = {{"ray", "torch", "sklearn", "gymnasium", "pettingzoo", "numpy", "pygame"}} & set(sys.modules)
sys.exit(f"imported: {{heavy}}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
