"""What the tools answer: real rows that say the finding and nothing else."""

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envs.session import Session
from envs.supply_chain import team
from envs.supply_chain.database import database
from envs.supply_chain.sheets import SHEETS
from envs.supply_chain.world import finding_in, sheets_of
from envs.supply_chain.world_file import parse_world, read_world
from runtime.records import ToolAnswered, ToolCall
from runtime.tools import Contract, canonical
from runtime.types import Scenario, Team
from tests.supply_chain.toys import SHIPPED, ask_all, drawn_world, written

CASES = 250


def answers(of: Team, cases: int) -> dict[str, list[tuple[str, Any]]]:
    """By tool: finding and answer."""
    found: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for case in range(cases):
        session = ask_all(of, case)
        for record in session.records:
            if isinstance(record, ToolAnswered):
                assert record.ok, record.fault
                found[record.tool].append((session.scenario.truth["findings"][record.tool], record.value))
    return found


@pytest.fixture(scope="module")
def shipped() -> dict[str, list[tuple[str, Any]]]:
    return answers(team(), CASES)


def test_every_finding_is_read_back_from_its_answer(shipped: dict[str, list[tuple[str, Any]]]) -> None:
    """By rule, in every case; and every finding of every tool came up."""
    file = read_world("supply_chain_v1")
    for tool, sheet in sheets_of(file).items():
        assert {f for f, _ in shipped[tool]} == set(file.tools[tool].findings)
        assert all(finding_in(sheet, answer) == finding for finding, answer in shipped[tool])


def spoken(answer: Any) -> frozenset[str]:
    return frozenset(w for w in re.findall(r"\w+", canonical(answer)) if w.isalpha())


def alike(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b)


def test_a_small_classifier_reads_every_finding_from_words_alone(shipped: dict[str, list[tuple[str, Any]]]) -> None:
    """The nearest of some cases' answers, by their words without digits, has the finding of any other answer."""
    for found in shipped.values():
        known = {spoken(a): f for f, a in found[: CASES // 2]}
        for finding, answer in found[CASES // 2 :]:
            said = spoken(answer)
            assert known[max(known, key=lambda k, said=said: alike(k, said))] == finding


def test_answers_with_the_same_finding_share_their_words(shipped: dict[str, list[tuple[str, Any]]]) -> None:
    """Whatever the case, most words (without digits) are the same."""
    for found in shipped.values():
        by_finding: dict[str, list[frozenset[str]]] = defaultdict(list)
        for finding, answer in found:
            by_finding[finding].append(spoken(answer))
        for said in by_finding.values():
            assert all(alike(a, said[0]) > 0.6 for a in said)


def test_another_worlds_findings_are_spelled_out_in_reports(tmp_path: Path) -> None:
    """Tools that no table is known for answer with written reports."""
    path = written(drawn_world(4), tmp_path)
    other, file = team(world=path), read_world(path)
    for tool, found in answers(other, 40).items():
        assert all(finding_in(sheets_of(file)[tool], a) == f for f, a in found)
        assert all(f in canonical(a) for f, a in found)


def test_a_known_tool_with_unknown_findings_answers_in_reports() -> None:
    """A name alone does not make the rows: what they could not say is reported in words."""
    file = parse_world(canonical({**SHIPPED, "name": "renamed", "tools": renamed(SHIPPED["tools"])}))
    sheets = sheets_of(file)
    assert sheets["customs_status"] is not SHEETS["customs_status"]
    assert sheets["order_history"] is SHEETS["order_history"]


def renamed(tools: dict[str, Any]) -> dict[str, Any]:
    return {**tools, "customs_status": {**tools["customs_status"], "findings": ["in order", "no papers"]}}


def test_answers_obey_schemas_that_say_something() -> None:
    """Each output schema lists the fields of a row, and refuses a row without them."""
    for tool in team().tools.values():
        schema = tool.output_schema
        if schema.get("type") == "array":
            assert Contract(schema).problem([{}]) is not None
            assert Contract(schema).problem("text") is not None


def with_cause(case: Scenario, cause: str) -> Scenario:
    return replace(case, truth={**case.truth, "cause": cause})


def test_given_the_finding_rows_do_not_depend_on_the_cause() -> None:
    """The same case with another cause but the same findings answers the same to the letter."""
    of = team()
    assert of.generate is not None
    for index in range(20):
        case = of.generate("train", 3, index)
        for tool in SHIPPED["tools"]:
            said = [of.tools[tool].run(of.world(with_cause(case, c))) for c in ("supplier_delay", "quality_hold")]
            assert said[0] == said[1]


def test_what_is_visible_does_not_depend_on_the_cause(tmp_path: Path) -> None:
    """Under another prior the same case looks the same, id and seed of the rows included."""
    only = {c: float(c == "customs_hold") for c in SHIPPED["prior"]}
    one, other = team(), team(world=written({**SHIPPED, "name": "customs_only", "prior": only}, tmp_path))
    assert one.generate is not None
    assert other.generate is not None
    for index in range(50):
        a, b = one.generate("train", 1, index), other.generate("train", 1, index)
        assert (a.id, a.visible, a.seed) == (b.id, b.visible, b.seed)
        assert b.truth["cause"] == "customs_hold"


def test_a_case_asked_again_answers_the_same() -> None:
    """Also after so many other cases that its rows had been cleared away."""
    of = team()
    assert of.generate is not None
    case = of.generate("train", 1, 0)
    first = of.world(case)
    before = {t: of.tools[t].run(first) for t in SHIPPED["tools"]}
    batch, index = database().batch, 1
    while database().batch is batch:
        of.tools["quality_report"].run(of.world(of.generate("train", 1, index)))
        index += 1
    assert {t: of.tools[t].run(first) for t in SHIPPED["tools"]} == before


def test_findings_left_out_are_drawn_from_the_cause() -> None:
    """A case from a file may name only its cause; its tools still answer, the same each time."""
    of = team()
    assert of.generate is not None
    bare = replace(of.generate("train", 1, 3), truth={"cause": "customs_hold"})
    assert of.tools["customs_status"].run(of.world(bare)) == of.tools["customs_status"].run(of.world(bare))


def test_news_search_answers_other_queries_too() -> None:
    """A query of the agent's own finds bulletins by their words; signs of query languages do no harm."""
    of = team()
    assert of.generate is not None
    case = of.generate("train", 1, 0)
    world = of.world(case)
    hits = of.tools["port_bulletin"].run(world, query="festival")
    assert "festival" in hits[0]["headline"]
    assert of.tools["port_bulletin"].run(world, query='")( * ^ nosuchword') == []
    assert case.visible["site"] in of.tools["port_bulletin"].run(world)[0]["headline"]


def test_a_tool_call_takes_two_statements() -> None:
    """One to write the rows, one to read them; searching the archive is done once a port. Unasked tools cost none."""
    of = team()
    assert of.generate is not None
    ask_all(of, 0)
    before = database().statements
    for case in range(100):
        session = Session(of, of.generate("eval", 9, case))
        session.act("triage", ToolCall(tool="order_history"))
        session.act("triage", ToolCall(tool="hand_over"))
        session.act("investigator", ToolCall(tool="port_bulletin"))
    assert database().statements - before <= 100 * 4 + 8
