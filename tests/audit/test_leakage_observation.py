"""Leaks of the truth into what agents see."""

import base64
import hashlib
from dataclasses import replace

import pytest

from rewards.audit import audit
from runtime.types import Scenario
from tests.audit.tiny import COLOURS, cases, generate, material, showing, tiny


def places(case: Scenario) -> int:
    return COLOURS.index(str(case.truth["colour"]))


SHOWN = {
    "told by the world": tiny(world=showing(lambda box, agent: {"hint": box.scenario.truth["colour"]})),
    "as a length": tiny(world=showing(lambda box, agent: {"rows": [0] * (1 + places(box.scenario))})),
    "base64 with salt": tiny(
        generate=cases(lambda c: {"tag": base64.b64encode(f"{c.id}/{c.truth['colour']}".encode()).decode()})
    ),
    "hashed": tiny(generate=cases(lambda c: {"tag": hashlib.sha256(str(c.truth["colour"]).encode()).hexdigest()[:16]})),
    "free text to a peer": tiny(
        world=showing(
            lambda box, agent: {"hint": str(box.scenario.truth["remark"])[::-1]} if agent == "judge" else None
        )
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_truth_that_is_shown_is_found(name: str) -> None:
    """A truth that agents see before any tool is asked is an error, however it is spelled."""
    report = audit(material(SHOWN[name]), ["truth-in-observation"])
    assert not report.ok
    assert report.errors[0].evidence.saw


PREDICTABLE = {
    "an id that grows with the label": cases(lambda c: {"order": f"A-{1000 * places(c) + len(c.id)}{c.seed % 10}"}),
    "row order": cases(lambda c: {"rows": [*COLOURS[places(c) :], *COLOURS[: places(c)]]}),
    "a timestamp": cases(lambda c: {"at": f"2024-0{1 + places(c)}-1{c.seed % 10}T08:00:00"}),
    "the length of a text": cases(lambda c: {"text": "x" * (10 + 3 * places(c) + c.seed % 2)}),
}


@pytest.mark.parametrize("name", PREDICTABLE)
def test_truth_that_can_be_learnt_from_the_opening_is_found(name: str) -> None:
    """What the case shows must not tell the truth, neither openly nor by order, length, id or time."""
    report = audit(material(tiny(generate=PREDICTABLE[name])), ["truth-predictable-at-start"])
    assert [f.evidence.used for f in report.errors] == ["truth.colour"]


def test_what_a_team_declares_may_be_learnt() -> None:
    """An opening may give away what ``opening_reveals`` names."""
    team = tiny(generate=PREDICTABLE["row order"], opening_reveals=frozenset({"colour"}))
    assert audit(material(team), ["truth-predictable-at-start", "truth-in-observation"]).ok


@pytest.mark.parametrize("seed", [0, 1])
def test_an_honest_team_is_not_accused(seed: int) -> None:
    """No leakage check finds anything in the honest team."""
    report = audit(material(seed=seed))
    assert [(f.check, f.message) for f in report.findings if f.severity != "note"] == []


def test_a_policy_that_reads_the_truth_is_found() -> None:
    """A player that names the right colour with all answers kept from it has seen it."""
    team = tiny(generate=cases(lambda c: {"order": 7 * places(c)}))
    known = team.baselines["careful"].policies or {}

    def knowing(seen, chance):
        return int(seen.seen[0].data["order"]) // 7 if seen.agent == "judge" else known["scout"](seen, chance)

    baseline = replace(team.baselines["careful"], policies={"scout": known["scout"], "judge": knowing})
    report = audit(material(replace(team, baselines={"careful": baseline})), ["label-shuffle"])
    assert "has seen the truth" in report.errors[0].message


def test_a_held_out_case_that_is_trained_on_is_found() -> None:
    """The same stream for both splits, a shifted one, and a renamed one."""
    streams = {
        "same": lambda split, seed, index: generate("any", 0, index),
        "shifted": lambda split, seed, index: generate("any", 0, index + (40 if split == "eval" else 0)),
        "renamed": lambda split, seed, index: replace(
            generate("any", 0, index), id=f"{split}-{index}", seed=index * seed
        ),
    }
    for name, stream in streams.items():
        assert not audit(material(tiny(generate=stream)), ["train-eval-overlap"]).ok, name
