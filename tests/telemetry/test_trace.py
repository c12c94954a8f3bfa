"""A whole chain by its one id: from a live team's store, and from a run's sampled episodes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.records import (
    Decided,
    ModelCalled,
    Observed,
    Rewarded,
    StateChanged,
    ToolAnswered,
    ToolCall,
    ToolUndone,
)
from runtime.store import Store, history, open_store
from telemetry.trace import chain_lines, folded, main
from tests.telemetry.samples import episode, write_run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/store.db")
    yield opened
    opened.close()


def test_the_store_tells_who_did_what_when_and_why(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each decision with what was seen, chosen, answered, sent and paid, in order; nothing of another session."""
    other = [r.model_copy(update={"correlation_id": "e8"}) for r in episode(answer="punctual")]
    told = [r for pair in zip(episode(), other, strict=True) for r in pair]
    store.write(lambda c: history.add(c, "supply_chain", [(r, "") for r in told]))
    assert main(["e7", "--store", f"sqlite:///{tmp_path}/store.db"]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = [
        "opened    e7 at 1970-01-01 00:00:00 UTC: supply_chain on case-7, seed 1",
        "saw       case: order 4711 is overdue",
        "saw       region: EU",
        'chose     query_orders(region="EU")  p 0.607',
        'answered  query_orders: {"status": "late"}  0.5 USD',
        'sent      to resolver: {"note": "overdue"}',
        "paid      tool_cost -0.50 to triage",
        "saw       note: overdue",
        "chose     expedite()",
        "failed    expedite: over_budget at $.region: no calls left",
        "paid      payoff +70.00 to everybody",
        "paid      tone missing (judge timed out)",
        'ended     success {"expedited": true}',
        "in all    2 decisions, paid +69.50 (missing in 1), 0.5 USD",
    ]
    assert [line[29:] for line in lines] == expected
    assert lines[0].split()[0] == "+0.000"
    assert lines[1].split()[:2] == ["+1.000", "triage/0"]
    assert lines[7].split()[:2] == ["+1.000", "resolver/0"]


def test_a_run_tells_its_sampled_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same chain from a run directory; an id that is not there is said, and so is a directory that is no run."""
    write_run(tmp_path / "run")
    assert main(["e7", "--run", str(tmp_path / "run")]) == 0
    assert 'chose     query_orders(region="EU")' in capsys.readouterr().out
    assert main(["nobody", "--run", str(tmp_path / "run")]) == 2
    assert "'nobody'" in capsys.readouterr().err
    assert main(["e7", "--run", str(tmp_path)]) == 1
    assert "not a run directory" in capsys.readouterr().err


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped path is said, and leaves no empty store behind."""
    assert main(["e7", "--store", f"sqlite:///{tmp_path}/none.db"]) == 3
    assert "no such file" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_other_calls_are_shown_with_their_probabilities() -> None:
    """The likeliest first, those nobody would have chosen left out."""
    calls = tuple(ToolCall(tool=name) for name in ("ask", "wait", "send", "never"))
    of = {"correlation_id": "s", "at": 5.0, "agent": "triage", "turn": 0}
    records = [
        Observed(**of, text="", candidates=calls, mask=(True,) * 4),
        Decided(**of, call=calls[0], logp=-1.2, probabilities=(0.3, 0.1, 0.6, 0.0)),
    ]
    line, _ = chain_lines(records)
    assert line.endswith("chose     ask()  p 0.301  (others: send() 0.600, wait() 0.100)")


def test_what_was_seen_before_is_not_said_again() -> None:
    """At its next decision an agent is shown with what is new to it; another agent with everything."""
    of = {"correlation_id": "s", "at": 0.0}
    first = Observed(**of, agent="triage", turn=0, text="case 7")
    second = Observed(**of, agent="triage", turn=1, text="case 7\nnews: a storm")
    third = Observed(**of, agent="resolver", turn=0, text="case 7")
    text = [line.split(maxsplit=1)[1].split() for line in chain_lines([first, second, third])][:-1]
    assert text == [
        ["triage/0", "saw", "case", "7"],
        ["triage/1", "saw", "news:", "a", "storm"],
        ["resolver/0", "saw", "case", "7"],
    ]


def test_what_seldom_happens_is_told_too() -> None:
    """An error and what was undone after it are lines; that an agent began to work and rested is none."""
    usual = StateChanged(correlation_id="s", at=0.0, agent="triage", before="idle", after="running")
    wrong = StateChanged(correlation_id="s", at=1.0, agent="triage", before="running", after="error")
    undone = ToolUndone(correlation_id="s", at=2.0, agent="triage", turn=0, tool="order", ok=True)
    text = list(chain_lines([usual, wrong, undone]))
    assert [line.split(maxsplit=1)[1] for line in text] == [
        "state     triage: running to error",
        "triage/0          undid     order",
        "in all    1 decision, paid 0.00, 0 USD",
    ]


def test_coercions_standardized_pay_and_what_a_model_cost_are_told() -> None:
    """What a tool said before it was made to fit, pay in standard deviations, tokens and US dollars."""
    of: dict[str, Any] = {"correlation_id": "s", "at": 0.0, "agent": "triage", "turn": 0}
    model = ModelCalled(**of, tokens_in=100, tokens_out=7, ms=12.0, model="local/tiny", cost_usd=0.25)
    answer = ToolAnswered(**of, tool="weigh", ok=True, value=25.3, raw="25.3", cost_usd=0.5)
    paid = [Rewarded(**of, term="thrift", value=v, standardized=z) for v, z in ((-0.5, -1.25), (-0.0, None))]
    text = [line[29:] for line in chain_lines([model, answer, *paid])]
    assert text == [
        "asked     local/tiny: 100 + 7 tokens, 12 ms, 0.25 USD",
        'answered  weigh: 25.3  (before coercion: "25.3")  0.5 USD',
        "paid      thrift -0.50 (standardized -1.25) to triage",
        "paid      thrift 0.00 to triage",
        "in all    1 decision, paid -0.50, 0.75 USD, 107 tokens",
    ]


def test_without_a_place_stores_and_runs_are_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The id is enough where the commands put things; that it is nowhere is said with the places."""
    monkeypatch.chdir(tmp_path)
    assert main(["e7"]) == 2
    assert "neither stores nor runs" in capsys.readouterr().err
    live = tmp_path / "live" / "shop" / "1"
    live.mkdir(parents=True)
    opened = open_store(f"sqlite:///{live}/store.db")
    other = [r.model_copy(update={"correlation_id": "e8"}) for r in episode()]
    opened.write(lambda c: history.add(c, "shop", [(r, "") for r in other]))
    opened.close()
    write_run(tmp_path / "runs" / "shop" / "1")
    for found in ("e7", "e8"):
        assert main([found]) == 0
        assert f"opened    {found} at" in capsys.readouterr().out
    assert main(["e9"]) == 2
    said = capsys.readouterr().err
    assert "live/shop/1/store.db" in said
    assert "runs/shop/1" in said


def test_a_broken_episode_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be read is said, and the search goes on."""
    run = write_run(tmp_path / "run")
    (run / "records" / "000009.jsonl").write_text("no record\n")
    assert main(["e7", "--run", str(run)]) == 0
    assert "000009.jsonl is left out" in capsys.readouterr().err


def test_long_lines_are_folded_on_a_terminal_without_losing_a_word() -> None:
    """The first columns stay free; where lines are not shown but read by a program they stay whole."""
    line = next(iter(chain_lines(episode(answer="word " * 60)[4:5])))
    shown = folded(line, 100).splitlines()
    assert len(shown) > 3
    assert max(map(len, shown)) <= 100
    assert all(part.startswith(" " * 39) for part in shown[1:])
    assert " ".join(" ".join(shown).split()) == " ".join(line.split())
    assert folded(line, 0) == line
