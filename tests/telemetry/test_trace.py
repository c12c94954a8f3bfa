"""A whole chain by its one id: from a live team's store, and from a run's sampled episodes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.records import Decided, Observed, StateChanged, ToolCall, ToolUndone
from runtime.store import Store, history, open_store
from telemetry.trace import chain_lines, main
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
    (line,) = chain_lines(records)
    assert line.endswith("chose     ask()  p 0.301  (others: send() 0.600, wait() 0.100)")


def test_what_was_seen_before_is_not_said_again() -> None:
    """At its next decision an agent is shown with what is new to it; another agent with everything."""
    of = {"correlation_id": "s", "at": 0.0}
    first = Observed(**of, agent="triage", turn=0, text="case 7")
    second = Observed(**of, agent="triage", turn=1, text="case 7\nnews: a storm")
    third = Observed(**of, agent="resolver", turn=0, text="case 7")
    text = [line.split(maxsplit=1)[1].split() for line in chain_lines([first, second, third])]
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
    ]
