"""The audit as a whole: reports, waivers, own checks, and what cannot be finished."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.console import Console

from rewards.audit import audit
from rewards.audit.findings import Finding, Report, Where, error
from rewards.audit.judging import cut, in_hindsight, in_training, spliced
from rewards.audit.material import Material
from rewards.audit.printed import print_report
from tests.audit.tiny import asked, material, right
from tests.audit.zoo.hints import end


def complains(material: Material) -> Iterator[Finding]:
    """Nobody is called judge."""
    if "judge" in material.agents:
        yield error("somebody is called judge", "call it otherwise", Where(agent="judge"))


def falls_over(material: Material) -> Iterator[Finding]:
    """Never gets there."""
    raise RuntimeError("no way")
    yield


def talks(material: Material) -> str:
    """Says what it means in a text."""
    return "all is well"


def shrugs(material: Material) -> None:
    """Says nothing at all."""


COMPLAINS, FALLS = f"{__name__}:complains", f"{__name__}:falls_over"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or __import__("types").ModuleType(__name__))
    for check in (complains, falls_over, talks, shrugs):
        monkeypatch.setattr(sys.modules[__name__], check.__name__, check, raising=False)


def test_an_own_check_is_run_and_can_be_waived() -> None:
    """A check named module:function reports like any other; a waiver lets the run go on, its reason on record."""
    report = audit(material(), [COMPLAINS], own=[COMPLAINS])
    assert [f.check for f in report.errors] == [COMPLAINS]
    waived = audit(material(), [COMPLAINS], {COMPLAINS: "it is a fine name"}, [COMPLAINS])
    assert waived.ok
    assert len(waived.findings) == 1
    assert waived.state()["findings"][0]["waived"] == "it is a fine name"


def test_a_waiver_may_name_a_term() -> None:
    """The check goes on looking at the other terms: what it finds there stops the run."""
    shown = end(lambda view: 1.0, name="shown")
    hidden = end(lambda view: 1.0, name="hidden")
    report = audit(material(terms=(shown, hidden)), ["constant"], {"constant:shown": "it is only for show"})
    assert {f.where.term for f in report.errors} == {"hidden"}
    assert {f["where"]["term"]: f["waived"] for f in report.state()["findings"]} == {
        "shown": "it is only for show",
        "hidden": None,
    }
    for waived in ("constnat:shown", "constnat"):
        with pytest.raises(ValueError, match="no check 'constnat'; did you mean constant"):
            audit(material(), ["constant"], {waived: "…"})


def test_a_waiver_may_name_a_term_that_an_own_check_found() -> None:
    """The name of such a check has a colon of its own."""
    report = audit(material(), [COMPLAINS], {f"{COMPLAINS}:right": "…"}, own=[COMPLAINS])
    assert len(report.errors) == 1
    named = replace(report, findings=tuple(replace(f, where=Where(term="right")) for f in report.findings))
    assert named.ok


@pytest.mark.parametrize(("check", "said"), [("talks", "all is well"), ("shrugs", "None")])
def test_a_check_that_says_no_findings_is_told_how_to(check: str, said: str) -> None:
    """An error of that check, which shows what it said and how a finding is made."""
    name = f"{__name__}:{check}"
    (found,) = audit(material(), [name], own=[name]).errors
    assert said in found.message
    assert "rewards.audit.findings.error" in found.message


def test_a_check_that_raises_is_an_error() -> None:
    """What was not looked at never passes for clean."""
    report = audit(material(), [FALLS], own=[FALLS])
    assert "RuntimeError: no way" in report.errors[0].message


def test_a_report_survives_json_and_prints_its_example() -> None:
    """``audit.json`` holds all of a report, and a terminal shows it."""
    report = audit(material(), [COMPLAINS, "cross-session"], own=[COMPLAINS])
    again = Report.from_state(json.loads(json.dumps(report.state())))
    assert again == report
    console = Console(record=True, width=120)
    print_report(report, console)
    text = console.export_text()
    assert "somebody is called judge" in text
    assert "call it otherwise" in text
    assert "1 error" in text


def test_an_unknown_check_is_refused_with_a_suggestion() -> None:
    """A misspelt name is no silent pass."""
    with pytest.raises(ValueError, match="did you mean cross-agent"):
        audit(material(), ["cross-agents"])


def test_hindsight_agrees_with_training_for_honest_terms() -> None:
    """Cut after a step, whole, or with another tail: an honest term says what it said in training."""
    checked = material()
    one, other = checked.episodes("random", 2)
    paid = [p for p in in_training(checked.mix, one) if p.term == "asked"]
    asks = next(w for w in checked.mix.terms if w.term is asked)
    for step in range(one.steps):
        for variant in (one, cut(one, step), spliced(one, step, other)):
            assert in_hindsight(asks, variant, step) == [p for p in paid if p.step == step]
    assert right.at_end
