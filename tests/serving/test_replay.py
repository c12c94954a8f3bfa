"""A recorded session under another version: as recorded for as long as it decides alike, and then what became of it."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assembly.driving import Driven
from assembly.paid import Compared
from envs.session import Session
from runtime.recorded import recorded_sessions, write_sessions
from runtime.records import Decided, EpisodeEnded, Rewarded, ToolAnswered, ToolCalled
from runtime.types import Outside
from serving.replay.__main__ import main
from serving.replay.replaying import NotReplayed, replayed
from serving.replay.words import lines_of, table_of
from tests.serving.conftest import TEAM
from tests.serving.recorded import CASES, Recorded, recorded


@pytest.fixture(scope="module")
def at(exports: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("house"), exports) as made:
        yield made


def decisions(records: Any) -> list[Any]:
    return [(r.agent, r.turn, r.call) for r in records if isinstance(r, Decided)]


def test_the_same_version_decides_as_it_did(at: Recorded) -> None:
    """Every decision of every session, every reward, and no parting."""
    for index in range(CASES):
        session = at.session(f"s{index}")
        replay = replayed(at.first, session)
        assert (replay.parting, replay.stopped) == (None, "")
        assert decisions(replay.records) == decisions(session.told())
        assert replay.agreed == len(decisions(session.told()))
        assert replay.paid.verdict() == "same"
        assert replay.success == session.success
        values = [[r.value for r in of if isinstance(r, Rewarded)] for of in (replay.records, session.told())]
        assert values[0] == pytest.approx(values[1])


def test_draws_are_those_of_the_record(at: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    """A session that was drawn is drawn again alike, from its own seed; greedily, or drawn from another, it parts."""
    greedily = otherwise = 0
    for whole in at.sessions():
        session = Session(at.first.team, whole.case(), seed=7, correlation_id=whole.session, clock=lambda: 1.0)
        driven = Driven(session, at.first.seats, at.first.judge)
        while not driven.over:
            driven.step()
        opened, *rest = session.records
        for seed, alike in ((7, True), (8, False)):
            told = [opened.model_copy(update={"seed": seed}), *rest]
            drawn = whole.model_copy(update={"records": tuple(r.model_dump_json() for r in told)})
            parting = replayed(at.first, drawn, greedy=False).parting
            assert parting is None or not alike
            otherwise += parting is not None
            greedily += replayed(at.first, drawn).parting is not None
    assert greedily > 0
    assert otherwise > 0
    asked = ["--last", str(CASES), "--version", "v1", "--file", str(at.file), "--json"]
    for more, parts in (([], False), (["--sample"], True)):
        assert main([*asked, *more]) == 0
        assert any(s["parting"] for s in json.loads(capsys.readouterr().out)["sessions"]) == parts


def test_where_two_versions_part(at: Recorded) -> None:
    """The first decision that differs, with what was seen and both versions' probabilities of each call."""
    session, replay = at.parted()
    told = decisions(session.told())
    assert decisions(replay.records)[: replay.agreed] == told[: replay.agreed]
    parting = replay.parting
    assert (parting.agent, parting.turn, parting.was) == told[replay.agreed]
    assert decisions(replay.records)[replay.agreed] == (parting.agent, parting.turn, parting.now)
    assert parting.was != parting.now
    assert parting.seen == parting.sees
    assert len(parting.options) > 1
    assert sum(o.was for o in parting.options) == pytest.approx(1, abs=1e-3)
    assert sum(o.now for o in parting.options) == pytest.approx(1, abs=1e-3)
    likeliest = max(parting.options, key=lambda o: o.now)
    assert likeliest.call == parting.now, "a greedy version takes what is likeliest to it"


def test_up_to_the_parting_the_recorded_answers_hold(at: Recorded) -> None:
    """An answer that was recorded is what is seen, even where the world would answer otherwise; and then it stops."""
    session, place = next(
        (s, i)
        for s in (at.session(f"s{index}") for index in range(CASES))
        for i, r in enumerate(s.told())
        if isinstance(r, ToolAnswered) and r.ok
    )
    records = session.told()
    records[place] = records[place].model_copy(update={"value": {"odd": 1}})
    changed = session.model_copy(update={"records": tuple(r.model_dump_json() for r in records)})
    replay = replayed(at.first, changed)
    answer = next(r for r in replay.records if isinstance(r, ToolAnswered))
    assert answer.value == {"odd": 1}
    if replay.parting:
        assert "answered otherwise than recorded" in replay.stopped


def test_it_goes_on_in_the_simulated_world(at: Recorded) -> None:
    """To its end, and both are judged by the same terms."""
    _, replay = at.parted()
    assert replay.stopped == ""
    assert sum(isinstance(r, EpisodeEnded) for r in replay.records) == 1
    assert replay.paid.before is not None
    assert replay.paid.after is not None
    assert set(replay.paid.terms) == {"payoff", "tool_cost", "handoff_cost"}
    assert replay.paid.after - replay.paid.before == pytest.approx(sum(replay.paid.moved().values()))


def test_where_nothing_can_answer_it_stops(at: Recorded) -> None:
    """What acts outside is not asked again: neither for the answers that are on record, nor after them."""
    team = at.second.team
    ran: list[str] = []

    def counted(name: str) -> Any:
        def run(world: object, **args: Any) -> Any:
            ran.append(name)
            return team.tools[name].run(world, **args)

        return run

    tools = {n: dataclasses.replace(t, outside=Outside(), run=counted(n)) for n, t in team.tools.items()}
    outside = dataclasses.replace(at.second, team=dataclasses.replace(team, tools=tools))
    for index in range(CASES):
        replay = replayed(outside, at.session(f"s{index}"))
        called_after = [r for r in replay.records if isinstance(r, ToolCalled)][-1:]
        if replay.parting and called_after and replay.stopped:
            assert "acts outside" in replay.stopped
            assert replay.paid.verdict() == "unknown"
            break
    else:
        raise AssertionError("no session was stopped")
    assert ran == []


def test_a_case_without_its_truth_is_replayed_up_to_the_parting(at: Recorded) -> None:
    """Live, the truth is often not known: where the world can be made without it, the decisions can be compared."""
    session, _ = at.parted()
    world = at.second.team.world
    whole = session.case()
    team = dataclasses.replace(at.second.team, world=lambda case: world(whole))
    records = session.told()
    opened = records[0].model_copy(update={"case": {**(records[0].case or {}), "truth": {}}})
    unknown = session.model_copy(
        update={"truth": {}, "records": tuple(r.model_dump_json() for r in [opened, *records[1:]])}
    )
    replay = replayed(dataclasses.replace(at.second, team=team), unknown)
    assert replay.parting
    assert "hidden truth" in replay.stopped
    assert replay.success is None


def test_another_teams_session_is_refused(at: Recorded) -> None:
    """And named."""
    other = dataclasses.replace(at.second, team=dataclasses.replace(at.second.team, name="others"))
    with pytest.raises(NotReplayed, match=r"session s0 is one of supply_chain, not of others"):
        replayed(other, at.session("s0"))


def test_verdicts() -> None:
    """By the terms that both have; a missing reward is not zero."""
    assert Compared({"a": 1.0}, {"a": 1.5}).verdict() == "better"
    assert Compared({"a": 1.0}, {"a": 0.5}).verdict() == "worse"
    assert Compared({"a": 0.1 + 0.2}, {"a": 0.3}).verdict() == "same"
    half = Compared({"a": 1.0, "b": None, "c": 1.0}, {"a": 2.0, "b": 1.0, "d": 3.0})
    assert (half.before, half.after, half.left_out) == (1.0, 2.0, ["b", "c", "d"])
    assert Compared({"a": None}, {"a": 1.0}).verdict() == "unknown"
    assert Compared({}, {}).verdict() == "unknown"


def test_the_lines_tell_where_and_why(at: Recorded) -> None:
    """Each decision, the parting with what was seen and how likely each call was, and what it came to."""
    _, replay = at.parted()
    text = "\n".join(lines_of(replay, "v2"))
    assert f"parted after {replay.agreed} decisions, at {replay.parting.agent}/{replay.parting.turn}" in text
    assert all(f"saw   {line}" in text for line in replay.parting.seen.splitlines())
    assert "ended in the simulated world" in text
    assert f"paid {replay.paid.before:+.2f}, now {replay.paid.after:+.2f}" in text
    assert text.count("  = ") == replay.agreed


def test_the_table_counts_and_names(at: Recorded) -> None:
    """Better, worse, same; the worst first; the terms that moved."""
    replays = [replayed(at.second, at.session(f"s{i}")) for i in range(CASES)]
    lines = list(table_of(replays, ["one that is not there"], "v2"))
    counts = [sum(r.paid.verdict() == v for r in replays) for v in ("better", "worse", "same", "unknown")]
    assert lines[0].startswith(
        f"{CASES} sessions under v2: {counts[0]} better, {counts[1]} worse, {counts[2]} same, {counts[3]} unknown"
    )
    assert sum(line.strip().startswith("s") and "->" in line for line in lines) == sum(
        r.parting is not None for r in replays
    )
    assert any(line.split()[:1] == ["payoff"] for line in lines)
    assert lines[-1] == "  left out: one that is not there"


def test_the_command_replays_one(at: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    """By the alias of the version, found in the registry that the serving file names."""
    session, replay = at.parted()
    assert main([session.session, "--version", "v2", "--file", str(at.file)]) == 0
    assert "parted after" in capsys.readouterr().out
    assert main([session.session, "--version", "v2", "--file", str(at.file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["parting"]["decision"] == replay.agreed
    assert told["verdict"] == replay.paid.verdict()


def test_the_command_replays_many(
    at: Recorded, exports: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a time on, the last so many, or those that a file names; with an export in place of an alias."""
    store = f"sqlite:///{at.folder}/store.db"
    asked = ["--version", str(exports[1]), "--store", store, "--team", TEAM]
    assert main([*asked, "--last", "5"]) == 0
    assert capsys.readouterr().out.startswith("5 sessions under ")
    assert main([*asked, "--since", "2026-01-01", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["sessions"]) == CASES
    (tmp_path / "ids").write_text("s1\nnobody\n\ns3\n")
    assert main([*asked, "--sessions", str(tmp_path / "ids"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [s["session"] for s in told["sessions"]] == ["s1", "s3"]
    assert "nobody" in told["left_out"][0]
    write_sessions(tmp_path / "s.parquet", recorded_sessions(at.store, TEAM))
    assert main([*asked, "--sessions", str(tmp_path / "s.parquet")]) == 0
    assert capsys.readouterr().out.startswith(f"{CASES} sessions under ")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["nobody", "--version", "v2"], "nothing is on record of a session 'nobody'"),
        (["s0", "--version", "v9"], "has no version 'v9'"),
        (["s0", "--version", "v2", "--file", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_what_is_not_there_is_refused(
    at: Recorded, more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 2, and said."""
    file = [] if "--file" in more else ["--file", str(at.file)]
    assert main([*more, *file]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--version", "v2"], ["s0", "--last", "3", "--version", "v2"], ["s0"]])
def test_a_command_that_makes_no_sense_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is opened."""
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err
