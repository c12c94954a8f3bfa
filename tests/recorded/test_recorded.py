"""What a team did live, from the store to a Parquet file and back, nothing lost."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import runtime.recorded.parquet as module
from runtime.recorded import NotRecorded, read_sessions, recorded_sessions, write_sessions
from runtime.recorded.__main__ import main
from runtime.records import EpisodeEnded, EpisodeOpened, Feedback, Record
from runtime.store import Store, feedback, history, open_store

URL = "sqlite:///{}/store.db"


def session(name: str, at: float, *, ends: bool = True) -> list[Record]:
    case = {"visible": {"asked": "wo bleibt es?", "n": [1, None]}, "truth": {"cause": "fog"}, "seed": 7}
    made: list[Record] = [
        EpisodeOpened(correlation_id=name, at=at, team="t", scenario="case", seed=0, version="abc", case=case)
    ]
    if ends:
        made.append(EpisodeEnded(correlation_id=name, at=at + 1, outcome={"ok": 1}, success=True))
    return made


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two sessions that are over, one that is not, and another team's."""
    opened = open_store(URL.format(tmp_path), "normal")
    played = [("t", session("a", 10)), ("t", session("b", 20)), ("t", session("open", 30, ends=False))]
    for team, made in [*played, ("u", session("c", 40))]:
        opened.write(lambda c, team=team, made=made: history.add(c, team, [(r, "") for r in made]))
    opened.write(lambda c: feedback.add(c, "t", Feedback(correlation_id="b", at=50, decision_id="b/x/0", value=9)))
    opened.write(lambda c: feedback.add(c, "t", Feedback(correlation_id="b", at=51, value=0.5)))
    opened.write(lambda c: feedback.add(c, "t", Feedback(correlation_id="b", at=52, value=0.1)))
    return opened


def test_sessions_that_are_over_are_read_whole(store: Store) -> None:
    """Case, outcome, the first word on the whole of it, every record; not those that go on, nor other teams'."""
    first, second = recorded_sessions(store, "t")
    assert (first.session, first.scenario_seed, first.truth, first.reward) == ("a", 7, {"cause": "fog"}, None)
    assert (second.session, second.reward, second.success, second.ended) == ("b", 0.5, True, 21)
    assert first.told() == session("a", 10)
    assert first.case().visible == {"asked": "wo bleibt es?", "n": [1, None]}


def test_a_time_is_from_its_begin_to_before_its_end(store: Store) -> None:
    """A session belongs to the time in which it ended."""
    assert [s.session for s in recorded_sessions(store, "t", 11, 21)] == ["a"]
    assert [s.session for s in recorded_sessions(store, "t", since=11.5)] == ["b"]


def test_a_parquet_file_gives_back_what_was_written(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several row groups, too; and other programs can read its plain columns."""
    monkeypatch.setattr(module, "ROWS", 1)
    file = tmp_path / "out" / "sessions.parquet"
    assert write_sessions(file, recorded_sessions(store, "t")) == 2
    assert list(read_sessions(file)) == list(recorded_sessions(store, "t"))
    table = pq.read_table(file)
    assert table.column("reward").to_pylist() == [None, 0.5]
    assert json.loads(table.column("truth")[0].as_py()) == {"cause": "fog"}
    assert pq.ParquetFile(file).num_row_groups == 2


def test_a_file_that_was_not_finished_is_not_there(store: Store, tmp_path: Path) -> None:
    """What fails half way leaves nothing."""

    def fails():
        yield from recorded_sessions(store, "t")
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError):
        write_sessions(tmp_path / "x.parquet", fails())
    assert not list(tmp_path.glob("x.parquet*"))


def test_other_files_are_refused(tmp_path: Path) -> None:
    """No Parquet, no recorded sessions, a later schema, no file."""
    (tmp_path / "text.parquet").write_text("no")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    later = module.schema().with_metadata({module.KIND_KEY: module.KIND.encode(), module.VERSION_KEY: b"99"})
    pq.write_table(later.empty_table(), tmp_path / "later.parquet")
    for name, told in (
        ("text", "cannot be read"), ("other", "holds no recorded sessions"), ("later", "schema 99, this program knows"),
        ("none", "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(NotRecorded, match=told):
            list(read_sessions(tmp_path / f"{name}.parquet"))


def test_the_command_writes_the_file(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says how many sessions there were; a store that is none is refused with exit 3."""
    file = tmp_path / "s.parquet"
    url = URL.format(tmp_path)
    assert main(["t", "--store", url, "--to", str(file), "--since", "1970-01-01T00:00:15"]) == 0
    assert capsys.readouterr().out == f"1 sessions of t in {file}\n"
    assert [s.session for s in read_sessions(file)] == ["b"]
    assert main(["t", "--store", "nonsense", "--to", str(file)]) == 3
