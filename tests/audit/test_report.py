"""What the command prints, writes and returns; the page; the example of the documentation."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rewards.audit import audit
from rewards.audit.findings import Evidence, Finding, Ran, Report, Where
from rewards.audit.page import page
from rewards.audit.registry import CHECKS

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "audit.md").read_text("utf-8")

EXPERIMENT = """
name: greeter
team: {use: greeter:team}
scenarios: {train: {seed: 1}, eval: {seed: 2, count: 100}}
policies: {ear: {kind: encoder}, voice: {kind: encoder}}
rewards:
  terms: [{use: understood}, {use: tool_cost}]
  audit: {waive: [{check: scale, reason: "it is small"}], checks: [my_checks:short]}
"""


@pytest.fixture
def greeter(tmp_path: Path) -> Path:
    """The team of the README, with the check of docs/audit.md."""
    own = (ROOT / "README.md").read_text("utf-8").split("## Bring your own team", 1)[1]
    (tmp_path / "greeter.py").write_text(re.findall(r"```python\n(.*?)```", own, re.DOTALL)[0])
    (tmp_path / "my_checks.py").write_text(re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)[0])
    (tmp_path / "greeter.yaml").write_text(EXPERIMENT)
    return tmp_path


def command(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "140"}
    return subprocess.run(
        [sys.executable, "-m", "rewards.audit", *args], cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_the_documented_check_runs_and_the_page_is_written(greeter: Path) -> None:
    """The README's team is clean under every check, its own one too; the report is printed, and written as a page."""
    ran = command(greeter, "greeter.yaml", "--html", "report.html")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "my_checks:short" in ran.stdout
    assert "waived: scale: it is small" in ran.stdout
    assert "Play by chance ends within six steps" in (greeter / "report.html").read_text("utf-8")


def test_an_error_exits_with_5_and_json_says_why(greeter: Path) -> None:
    """A one-line fault in a copy: paid whatever is done."""
    file = greeter / "greeter.py"
    file.write_text(file.read_text().replace("return float(view.success)", "return 1.0"))
    ran = command(greeter, "greeter.yaml", "--json", "--only", "constant", "my_checks:short")
    assert ran.returncode == 5, ran.stdout + ran.stderr
    report = Report.from_state(json.loads(ran.stdout))
    assert [(f.check, f.where.term) for f in report.errors] == [("constant", "understood")]


def test_a_sheet_goes_out_and_comes_back(greeter: Path) -> None:
    """Written by one command, filled in, compared by another; a bad row is refused with exit 2."""
    assert "100 decisions" in command(greeter, "greeter.yaml", "--sheet", "labels.csv").stdout
    sheet = greeter / "labels.csv"
    sheet.write_text(re.sub(r",\r?\n", ",splendid\n", sheet.read_text("utf-8-sig").replace("label\n", "label,\n", 1)))
    ran = command(greeter, "greeter.yaml", "--labels", "labels.csv", "--only", "human-agreement")
    assert ran.returncode == 2
    assert "row 2: 'splendid' is no number" in ran.stderr


def test_an_own_check_that_is_not_there_is_refused(greeter: Path) -> None:
    """Before anything is played, with the place in the file."""
    ran = command(greeter, "greeter.yaml", "--set", "rewards.audit.checks=[my_checks:shorter]")
    assert ran.returncode == 2
    assert "rewards.audit.checks.0" in ran.stderr


class Reader(HTMLParser):
    """Which elements a page has, and what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_escapes_whatever_it_shows() -> None:
    """Nothing that an agent, a term or a waiver says becomes markup; nothing is fetched from anywhere."""
    evil = "<script>alert(1)</script><img src=x onerror=y>"
    found = Finding(
        severity="error",
        message=evil,
        remedy=evil,
        check="sign",
        where=Where(term=evil, agent=evil, episode=evil, player=evil),
        evidence=Evidence(numbers={evil: 1.0}, saw=evil, used=evil),
    )
    ran = {"sign": Ran(promise=evil, seconds=0.1), evil: Ran(promise="", seconds=0.0, skipped=evil)}
    written = page(Report(subject=evil, findings=(found,), ran=ran, waived={"scale": evil}))
    reader = Reader()
    reader.feed(written)
    assert not {"script", "img", "link", "iframe"} & set(reader.tags)
    assert reader.text.count(evil) >= 12
    assert not re.findall(r"""(?:src|href)=|url\(|@import""", written.replace("src=x", ""))


def test_every_check_is_documented() -> None:
    """docs/audit.md has a row for each, with the promise it is known by."""
    for name in CHECKS:
        assert f"| `{name}` |" in DOCS


def test_the_ranges_are_those_of_the_play() -> None:
    """By term and by agent, from at least 100 episodes of each player: what gates and alert rules go by."""
    from rewards.audit.ranges import agent_ranges, expected_ranges
    from tests.audit.tiny import material

    found = expected_ranges(material())
    assert (found["right"].low, found["right"].high) == (-1.0, 1.0)
    assert (found["asked"].low, found["asked"].high) == (-0.1, 0.0)
    assert found["right"].episodes == 300
    agents = agent_ranges(material())
    assert (agents["judge"].low, agents["judge"].high) == pytest.approx((-1.1, 0.9))
    assert not found["right"].far(1.1)
    assert found["right"].far(2.0)
    assert audit(material(), ["out-of-range"]).ok
