"""Sessions that went badly become cases; a version is tried on them, and may not be promoted over them."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from assembly.cases import Case, read_cases, write_cases
from assembly.problems import Refused
from runtime.errors import TeamError
from runtime.recorded import RecordedSession
from runtime.records import Feedback, Rewarded
from runtime.seams import now
from runtime.store import feedback
from serving.errors import NotNow
from serving.loading import load
from serving.regressions.__main__ import main
from serving.regressions.collecting import added, complaints, reward_of, worst
from serving.regressions.demanding import Demanding
from serving.regressions.trying import demand, lines_of, tried
from serving.rollout.controller import Controller
from serving.rollout.kept import LEASE_S, note
from serving.rollout.outcome import Outcome
from serving.rollout.plan import Plan, ShareRule
from serving.versions.__main__ import main as steer
from tests.serving.conftest import TEAM
from tests.serving.recorded import CASES, Recorded, recorded


@pytest.fixture(scope="module")
def at(exports: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Both versions ready, the first one current, and one session that somebody complained about."""
    with recorded(tmp_path_factory.mktemp("house"), exports) as made:
        for alias in ("v1", "v2"):
            made.versions.deploy(TEAM, alias, by="test", why="")
            made.versions.settle(made.versions.version(TEAM, alias), "ready", "", "test")
        made.versions.promote(TEAM, "v1", by="test", why="")
        said = Feedback(correlation_id="s3", at=5.0, value=-2.0, source="customer")
        made.store.write(lambda c: feedback.add(c, TEAM, said))
        yield made


def paid(session: RecordedSession, factor: float) -> RecordedSession:
    """The same session, had it been paid so many times as much, or so much less."""
    records = [
        r.model_copy(update={"value": (r.value or 0.0) + factor}) if isinstance(r, Rewarded) else r
        for r in session.told()
    ]
    return session.model_copy(update={"records": tuple(r.model_dump_json() for r in records)})


def case(session: RecordedSession, name: str = "") -> Case:
    return Case(name=name or session.session, session=session)


def cases_at(folder: Path, *cases: Case) -> Path:
    file = folder / "cases.jsonl"
    write_cases(file, cases)
    return file


def test_a_file_of_cases_gives_back_what_was_written(at: Recorded, tmp_path: Path) -> None:
    """Whole: a case needs no store any more."""
    cases = [case(at.session("s0"), "one"), case(at.session("s1"))]
    assert read_cases(cases_at(tmp_path, *cases)) == cases


def test_sessions_are_added_once(at: Recorded, tmp_path: Path) -> None:
    """To what is there; each says why."""
    file = tmp_path / "cases.jsonl"
    first = added(file, [at.session("s0"), at.session("s3")], "")
    assert [c.name for c in first.added] == ["s0", "s3"]
    assert first.added[0].why.startswith("it was paid")
    assert first.added[1].why == "somebody said -2 of it"
    again = added(file, [at.session("s3"), at.session("s4")], "asked for twice")
    assert ([c.name for c in again.added], again.known) == (["s4"], ["s3"])
    assert [c.why for c in read_cases(file)][2] == "asked for twice"
    silent = at.session("s5").model_copy(update={"records": at.session("s5").records[:1]})
    for success, why in ((True, "it ended well"), (False, "it did not end well")):
        (found,) = added(tmp_path / f"{success}.jsonl", [silent.model_copy(update={"success": success})], "").added
        assert found.why.startswith(why)


def test_the_worst_are_those_that_were_paid_least(at: Recorded) -> None:
    """What somebody said counts before the team's own terms; sessions without any reward are left out."""
    sessions = at.sessions()
    rewards = {s.session: reward_of(s) for s in sessions}
    assert rewards["s3"] == -2.0
    found = worst(sessions, 4)
    assert [rewards[s.session] for s in found] == sorted(r for r in rewards.values() if r is not None)[:4]
    silent = sessions[0].model_copy(update={"records": sessions[0].records[:1], "reward": None})
    assert reward_of(silent) is None
    assert worst([silent], 1) == []
    assert [s.session for s in complaints(sessions, 0.0)] == ["s3"]


def test_the_same_version_does_no_worse(at: Recorded) -> None:
    """On any of its own sessions."""
    found = tried(at.first, [case(s) for s in at.sessions()])
    assert not any(t.worse for t in found)
    assert all(t.known for t in found)
    assert demand(found, "v1") == f"{CASES} regression cases, none worse"
    assert [t.passed for t in found] == [s.success for s in at.sessions()]


def test_what_was_recorded_better_is_worse_now(at: Recorded) -> None:
    """And named, where a promotion asks."""
    cases = [case(at.session("s0")), case(paid(at.session("s1"), +5.0)), case(paid(at.session("s2"), -5.0))]
    found = tried(at.first, cases)
    assert [t.worse for t in found] == [False, True, False]
    with pytest.raises(NotNow, match=r"v1 does worse on 1 of 3 cases: s1$"):
        demand(found, "v1")
    lines = list(lines_of(found, "v1"))
    assert lines[0].endswith("1 worse than recorded, 0 not known")
    assert lines[2].startswith("  worse     s1")


def test_what_no_longer_ends_well_is_worse(at: Recorded) -> None:
    """Also where no reward is known of both."""
    session = next(s for s in at.sessions() if not s.success)
    silent = [r for r in session.told() if not isinstance(r, Rewarded)]
    well = session.model_copy(update={"success": True, "records": tuple(r.model_dump_json() for r in silent)})
    (found,) = tried(at.first, [case(well)])
    assert found.replay
    assert found.replay.paid.verdict() == "unknown"
    assert found.worse


def test_another_teams_case_is_not_tried(at: Recorded) -> None:
    """It is told, and is neither better nor worse."""
    other = dataclasses.replace(at.first, team=dataclasses.replace(at.first.team, name="others"))
    (found,) = tried(other, [case(at.session("s0"))])
    assert (found.replay, found.worse, found.passed, found.known) == (None, False, False, False)
    assert "not of others" in found.why_not


def test_a_promotion_asks_the_cases(at: Recorded, tmp_path: Path) -> None:
    """Refused with the names of those that got worse; granted where none did, and the history says on what."""
    bad = cases_at(tmp_path, case(paid(at.session("s1"), +500.0)))
    careful = Demanding(at.versions, bad, tmp_path / "fetched", greedy=True)
    for _ in range(2):
        with pytest.raises(NotNow, match="v2 does worse on 1 of 1 cases: s1"):
            careful.promote(TEAM, "v2", by="test", why="")
    assert at.versions.current(TEAM) == "v1"
    cases_at(tmp_path, case(paid(at.session("s1"), -500.0)))
    careful.promote(TEAM, "v2", by="test", why="a try")
    assert at.versions.current(TEAM) == "v2"
    assert at.versions.history(TEAM)[-1].why == "a try; 1 regression case, none worse"
    careful.promote(TEAM, "v1", by="test", why="")


def test_a_plan_may_ask_them(at: Recorded, tmp_path: Path) -> None:
    """The controller steers by whoever promotes; what is refused stays a canary."""
    bad = cases_at(tmp_path, case(paid(at.session("s1"), +500.0)))
    careful = Demanding(at.versions, bad, tmp_path / "fetched", greedy=True)
    controller = Controller(at.store, TEAM, Plan(), careful)
    assert controller.look() == {}
    assert careful.current(TEAM) == "v1"
    careful.canary(TEAM, "v2", 0.05, by="test", why="")
    assert careful.ratios(TEAM) == {"v2": 0.05}
    assert set(controller.look()) == {"v2"}
    careful.rollback(TEAM, "v2", by="test", why="")
    assert careful.ratios(TEAM) == {}
    at.versions.deploy(TEAM, "v2", by="test", why="")
    at.versions.settle(at.versions.version(TEAM, "v2"), "ready", "", "test")


def later() -> float:
    """Now, after whoever judged before has let go."""
    return now() + 2 * LEASE_S


def test_a_plan_does_not_promote_over_them(at: Recorded, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is as good by its sessions stays a canary for as long as a case went worse, which the log names."""
    bad = cases_at(tmp_path, case(paid(at.session("s1"), +500.0)))
    careful = Demanding(at.versions, bad, tmp_path / "fetched", greedy=True)
    plan = Plan(steps=(0.5, 1.0), minimum_sessions=60, watch=("errors",), errors=ShareRule(tolerance=0.01, margin=0.3))
    controller = Controller(at.store, TEAM, plan, careful, clock=later)
    careful.canary(TEAM, "v2", 0.5, by="test", why="")
    controller.look()
    for count in range(400):
        told = Outcome(session=f"o{count}", version=("v1", "v2")[count % 2], opened=later())
        at.store.write(lambda c, told=told: note(c, TEAM, told, later()))
    assert controller.look()["v2"].action == "promote"
    assert (careful.current(TEAM), careful.ratios(TEAM)) == ("v1", {"v2": 0.5})
    assert "v2 does worse on 1 of 1 cases: s1" in caplog.text
    cases_at(tmp_path, case(paid(at.session("s1"), -500.0)))
    controller.look()
    assert careful.current(TEAM) == "v2"
    careful.promote(TEAM, "v1", by="test", why="")


def test_a_plan_names_a_file_that_is_there(at: Recorded, tmp_path: Path) -> None:
    """From the serving file's folder; one that cannot be read, or holds none, is refused with its line."""
    text = 'teams: {supply_chain: {registry: registry}}\nrollout:\n  regressions: "cases.jsonl"\n'
    (tmp_path / "serving.yaml").write_text(text)
    with pytest.raises(Refused, match=r"line 3 .*rollout.regressions: cannot be read"):
        load(tmp_path / "serving.yaml")
    file = cases_at(tmp_path, case(at.session("s0")))
    settings = load(tmp_path / "serving.yaml")
    assert settings.rollout
    assert settings.rollout.regressions == str(file)
    file.write_text("{}\n")
    with pytest.raises(Refused, match=r"rollout.regressions: .*line 1: no regression case"):
        load(tmp_path / "serving.yaml")


def test_the_command_adds_by_name_and_by_reward(
    at: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And shows what there is."""
    to, where = tmp_path / "cases.jsonl", ["--file", str(at.file)]
    assert main(["add", "s0", "s1", "--to", str(to), "--why", "too slow", *where]) == 0
    assert capsys.readouterr().out == f"added s0: too slow\nadded s1: too slow\n2 cases added to {to}\n"
    assert main(["add", "--worst", "2", "--since", "2026-01-01", "--to", str(to), *where]) == 0
    assert "added" in capsys.readouterr().out
    assert main(["add", "--complaints", "--to", str(to), *where]) == 0
    names = [c.name for c in read_cases(to)]
    assert names[:2] == ["s0", "s1"]
    assert "s3" in names
    capsys.readouterr()
    assert main(["list", str(to)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(names)


def test_the_command_tries_a_version(at: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 4 where a case went worse, so that a pipeline can ask."""
    good, where = cases_at(tmp_path, case(at.session("s0"))), ["--version", "v1", "--file", str(at.file)]
    assert main(["try", str(good), *where]) == 0
    assert capsys.readouterr().out.startswith("1 cases under v1:")
    bad = cases_at(tmp_path, case(paid(at.session("s1"), +500.0)))
    assert main(["try", str(bad), *where, "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["s1"]["worse"] is True


def test_promote_with_cases(at: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``serving.versions promote … --regressions``: refused with exit code 2 and the names."""
    bad = cases_at(tmp_path, case(paid(at.session("s1"), +500.0)))
    asked = [TEAM, "v2", "--file", str(at.file), "--regressions", str(bad)]
    assert steer(["promote", *asked]) == 2
    assert "v2 does worse on 1 of 1 cases: s1" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        steer(["drain", *asked])
    assert "--regressions has no effect at drain" in capsys.readouterr().err
    assert at.versions.current(TEAM) == "v1"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["add", "nobody", "--to", "x.jsonl"], "nothing is on record of a session 'nobody'"),
        (["list", "nowhere.jsonl"], "nowhere.jsonl"),
        (["try", "nowhere.jsonl", "--version", "v1"], "nowhere.jsonl"),
    ],
)
def test_what_is_not_there_is_refused(
    words: list[str], told: str, at: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 2."""
    where = ["--file", str(at.file)] if words[0] != "list" else []
    assert main([*words, *where]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["add", "--to", "x.jsonl"],
        ["add", "s0", "--worst", "3", "--to", "x.jsonl"],
        ["add", "s0", "--since", "2026-01-01", "--to", "x.jsonl"],
        ["add", "--worst", "0", "--to", "x.jsonl"],
        ["add", "s0"],
    ],
)
def test_a_command_that_makes_no_sense_is_refused(words: list[str]) -> None:
    """Before anything is opened."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2


def test_other_files_are_no_cases(at: Recorded, tmp_path: Path) -> None:
    """Empty, another kind, two of one name: refused with the line, and nothing is written over."""
    file = tmp_path / "cases.jsonl"
    for text, told in (("", "it holds no case"), ('{"visible": {}}\n', "line 1: no regression case")):
        file.write_text(text)
        with pytest.raises(TeamError, match=told):
            read_cases(file)
    one = case(at.session("s0"))
    write_cases(file, [one, one])
    with pytest.raises(TeamError, match=r"line 2: a case before is called 's0' too"):
        read_cases(file)
    file.write_text("mine\n")
    with pytest.raises(TeamError):
        added(file, [at.session("s0")], "")
    assert file.read_text() == "mine\n"
