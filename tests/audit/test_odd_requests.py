"""What the audit's command is asked for and cannot do is told at once: exit 2, and no traceback of ours."""

from pathlib import Path

import pytest

from rewards.audit.__main__ import main
from rewards.audit.auditing import audit
from rewards.audit.check import Check
from rewards.audit.registry import CHECKS
from tests.audit.tiny import material

SHOP = Path(__file__).parents[1] / "trainers" / "little_shop.yaml"


@pytest.mark.parametrize(
    ("option", "file", "said"),
    [
        ("--sheet", "nowhere/x.csv", "there is no folder"),
        ("--html", "nowhere/x.html", "there is no folder"),
        ("--html", ".", "is a folder"),
        ("--labels", "wide.csv", "wide.csv: field larger than field limit"),
        ("--labels", "nowhere.csv", "cannot be read"),
        ("--labels", ".", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_before_anything_is_played(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    file: str,
    said: str,
) -> None:
    """Exit 2, in words: neither after the audit, nor as a fault of ours."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("assembly.stage.material_of", lambda *_: pytest.fail("it has been played"))
    Path("wide.csv").write_text("decision,label\n" + "x" * 200_000 + ",1\n")
    assert main([str(SHOP), option, file]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_a_team_that_exits_is_no_clean_audit(capsys: pytest.CaptureFixture[str]) -> None:
    """sys.exit(0) in a world is told as whatever else it raises: exit 5, with its line."""
    assert main([str(SHOP), "--json", "--set", "team.args={burns: exits}"]) == 5
    out = capsys.readouterr().out
    assert "could not be finished: SystemExit" in out
    assert "little_shop.py:" in out


def test_a_check_that_exits_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was not looked at may pass for clean."""

    def leaving(_: object) -> list[object]:
        raise SystemExit(0)

    monkeypatch.setitem(CHECKS, "leaving", Check(leaving, "leaves"))
    report = audit(material(), ["leaving"])
    assert not report.ok
    assert "could not be finished: SystemExit" in report.errors[0].message
