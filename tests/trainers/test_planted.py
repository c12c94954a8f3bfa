"""One fault planted in a copy of the supply-chain team: training does not begin, and the right check says why."""

import json
from html import unescape
from pathlib import Path

import pytest

from tests.trainers.commands import in_process

HERE = Path(__file__).parent / "planted"
LEAKS = {"truth-in-observation", "truth-predictable-at-start"}
FAULTS: dict[str, set[str]] = {
    "base64": LEAKS,
    "id_grows": LEAKS,
    "timestamp": LEAKS,
    "list_length": LEAKS,
    "same_stream": {"train-eval-overlap"},
    "reads_ahead": {"future-in-reward"},
    "blank_is_right": {"failure-as-zero"},
    "everybody_gets_it": {"nearly-constant", "constant"},
    "wrong_way_round": {"sign"},
    "swallowed": {"failure-as-zero"},
    "far_out": {"dominated", "scale", "out-of-range"},
}
EXPERIMENT = """
name: planted
team: {{use: planted_chain:team, args: {{fault: {fault}}}}}
scenarios: {{train: {{seed: 1}}, eval: {{seed: 2, count: 200}}}}
policies: {{triage: {{kind: encoder}}, investigator: {{kind: encoder}}, resolver: {{kind: encoder}}}}
rewards:
  terms: [{{use: payoff}}, {{use: tool_cost}}, {{use: handoff_cost}}{more}]
  standardize: {{per: agent, center: false}}
gates: {{live: false}}
stop: {{iterations: 1}}
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_stops_the_run(fault: str, tmp_path: Path) -> None:
    """Exit 5, the finding of the check that is for it, and no iteration."""
    (tmp_path / "planted_chain.py").write_text((HERE / "planted_chain.py").read_text())
    more = ", {use: planted}" if fault not in ("base64", "id_grows", "timestamp", "list_length", "same_stream") else ""
    file = tmp_path / "planted.yaml"
    file.write_text(EXPERIMENT.format(fault=fault, more=more))
    ran = in_process(tmp_path / "runs", file=file)
    assert ran.code == 5, ran.out + ran.err
    assert ran.directory
    report = json.loads((ran.directory / "audit.json").read_text())
    found = {f["check"] for f in report["findings"] if f["severity"] == "error"}
    assert found & FAULTS[fault], report["findings"]
    assert not (ran.directory / "metrics.jsonl").exists()
    assert ran.result["status"] == "audit"
    page = (ran.directory / "report.html").read_text()
    assert "The reward audit found an error." in page
    assert all(f["message"] in unescape(page) for f in report["findings"] if f["check"] in found & FAULTS[fault])
