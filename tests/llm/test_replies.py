"""Replies of frozen models are kept: asked again, nobody is asked, nothing is billed, and the episode is the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assembly.training import Resources
from envs.tally import Tally
from runtime.llm import Answered, Message, Price, Request
from runtime.llm.calling import Caller
from runtime.llm.limits import Seams
from runtime.llm.model import Model, Priced
from runtime.llm.remembering import Remembering
from runtime.llm.replies import OFF, VARIABLE, Replies, Reply, kept, switch, switched_off, usual
from runtime.llm.scripted import Scripted
from runtime.llm.shared import InMemory
from runtime.llm.types import Failure
from runtime.records import ModelCalled, Rewarded, ToolAnswered, billed
from tests.llm.providers import CALM
from trainers.ray_cluster import _arguments

PRICE = Price(usd_per_million_in=1e6, usd_per_million_out=1e6)
"""A dollar a token."""


class Counting:
    """A model that says how often it was asked."""

    def __init__(self, fails: bool = False) -> None:
        self.asked, self.fails = 0, fails

    def __call__(self, request: Request) -> str | Failure:
        self.asked += 1
        return Failure(kind="refused", message="no") if self.fails else f"answer {self.asked}"


def remembering(rule: Counting, directory: Path, name: str = "m") -> Remembering:
    caller = Caller(Scripted(rule), CALM, InMemory(), Seams())
    return Remembering(Model([Priced(caller, PRICE)], CALM, Seams()), name, Replies(directory))


def ask(text: str = "who are you", **more: object) -> Request:
    return Request(messages=(Message("user", text),), **more)  # type: ignore[arg-type]


def test_the_same_question_is_asked_once(tmp_path: Path) -> None:
    """In this process and any later one; what was spent then is told, and marked as of then."""
    rule = Counting()
    first, again = (remembering(rule, tmp_path).ask(ask()) for _ in range(2))
    assert isinstance(first, Answered)
    assert isinstance(again, Answered)
    assert (rule.asked, again.text, again.reason) == (1, first.text, first.reason)
    assert (again.spent.tokens_in, again.spent.cost_usd) == (first.spent.tokens_in, first.spent.cost_usd)
    assert (first.spent.cached, again.spent.cached, again.spent.attempts) == (False, True, 0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ask(), ask("who am I")),
        (ask(), ask(max_tokens=7)),
        (ask(), ask(schema={"type": "object"})),
        (ask(temperature=0.5, seed=1), ask(temperature=0.5, seed=2)),
        (ask(temperature=0.5, seed=1), ask(temperature=0.6, seed=1)),
    ],
)
def test_whatever_a_reply_depends_on_makes_another_question(one: Request, other: Request, tmp_path: Path) -> None:
    """Content and sampling."""
    rule = Counting()
    model = remembering(rule, tmp_path)
    for request in (one, other, one, other):
        model.ask(request)
    assert rule.asked == 2


def test_another_model_has_its_own_replies(tmp_path: Path) -> None:
    """In the same directory."""
    rule = Counting()
    for name in ("m", "n", "m", "n"):
        remembering(rule, tmp_path, name).ask(ask())
    assert rule.asked == 2


def test_chance_without_a_seed_and_failures_are_not_kept(tmp_path: Path) -> None:
    """What would be another reply the next time is asked for the next time."""
    rule, failing = Counting(), Counting(fails=True)
    for _ in range(2):
        remembering(rule, tmp_path).ask(ask(temperature=1.0))
        remembering(failing, tmp_path, "failing").ask(ask())
    assert (rule.asked, failing.asked) == (2, 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[]", b'{"reply": {"text": "planted"}, "sum": ""}'])
def test_a_damaged_reply_is_as_if_it_were_not_there(damage: bytes, tmp_path: Path) -> None:
    """It is ignored and replaced; one that somebody wrote into it by hand, too."""
    rule = Counting()
    remembering(rule, tmp_path).ask(ask())
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    texts = {getattr(remembering(rule, tmp_path).ask(ask()), "text", "") for _ in range(2)}
    assert (rule.asked, texts) == (2, {"answer 2"})


def test_half_a_character_is_kept_too(tmp_path: Path) -> None:
    """As models say it now and then, and JSON can hold it: nothing fails for it, and it is given again."""
    replies = Replies(tmp_path)
    for _ in range(2):
        replies.keep({"asked": "\ud83d"}, Reply(text="\ud83d hi"))
        assert replies.find({"asked": "\ud83d"}) == Reply(text="\ud83d hi")


def test_there_is_room_for_so_much(tmp_path: Path) -> None:
    """The least recently used go; what is used again stays."""
    replies = Replies(tmp_path, most_bytes=64_000)
    for number in range(200):
        replies.keep({"n": number}, Reply(text="x" * 1000))
        os.utime(max(tmp_path.iterdir(), key=lambda f: f.stat().st_ctime_ns), (number, number))
        assert replies.find({"n": 0}) is not None
    total = sum(f.stat().st_size for f in tmp_path.iterdir())
    assert total <= 64_000 * (1 + 1 / 16) + 2000
    assert replies.find({"n": 199}) is not None
    assert replies.find({"n": 1}) is None


WRITES = """
import sys
from pathlib import Path
from runtime.llm.replies import Replies, Reply
replies = Replies(Path(sys.argv[1]), most_bytes=50_000)
for number in range(300):
    question = {"n": number % 40}
    found = replies.find(question)
    assert found is None or found.text == str(number % 40) * 200, found
    replies.keep(question, Reply(text=str(number % 40) * 200))
"""


def test_processes_share_a_directory(tmp_path: Path) -> None:
    """Reading, writing and removing at once: nobody reads half a reply, nobody fails."""
    words = [sys.executable, "-c", WRITES, str(tmp_path)]
    root = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    both = [subprocess.Popen(words, env=root, stderr=subprocess.PIPE) for _ in range(2)]
    assert [(p.communicate(timeout=100)[1], p.returncode) for p in both] == [(b"", 0)] * 2
    assert all(json.loads(f.read_text())["reply"] for f in tmp_path.iterdir())


def test_a_directory_that_cannot_be_written_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is said once."""
    (tmp_path / "file").write_text("")
    rule = Counting()
    model = remembering(rule, tmp_path / "file" / "replies")
    assert all(isinstance(model.ask(ask()), Answered) for _ in range(3))
    assert rule.asked == 3
    assert caplog.text.count("replies are not kept") == 1


def test_only_commands_switch_it_on(tmp_path: Path) -> None:
    """Live and served teams keep nothing; training does, where the user says or in his cache; `--no-cache` does not."""
    assert kept() is None
    switch(on=True)
    assert kept().directory == usual()
    os.environ[VARIABLE] = str(tmp_path)
    switch(on=True)
    assert kept().directory == tmp_path
    switch(on=False)
    assert (kept(), switched_off(), os.environ[VARIABLE]) == (None, True, OFF)


def test_a_cached_reply_is_not_billed() -> None:
    """Neither in dollars nor in tokens, be it a teammate's or a judge's; it is counted as what it is."""
    who = {"correlation_id": "s", "at": 0.0, "agent": "a", "turn": 0}
    spent = {"tokens_in": 10, "tokens_out": 2, "ms": 1.0, "cost_usd": 0.5}
    records = [
        ModelCalled(**who, **spent),
        ModelCalled(**who, **spent, cached=True),
        Rewarded(**who, term="t", value=1.0, tokens=7, cost_usd=0.25),
        Rewarded(**who, term="t", value=1.0, tokens=7, cost_usd=0.25, cached=True),
        ToolAnswered(**who, tool="t", ok=True, cost_usd=1.0),
    ]
    assert [billed(r) for r in records] == [(0.5, 12), (0.0, 0), (0.25, 7), (0.0, 0), (1.0, 0)]
    tally = Tally()
    for record in records:
        tally._add_record(record)
    assert (tally.cost_usd, tally.tokens, tally.cached) == (1.75, 19, 2)


def test_a_cluster_is_told_that_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processes inherit nothing from the command."""
    told = _arguments(Resources(ray_address="10.0.0.1:6379"))
    assert "runtime_env" not in told
    monkeypatch.setenv(VARIABLE, OFF)
    told = _arguments(Resources(ray_address="10.0.0.1:6379"))
    assert told["runtime_env"] == {"env_vars": {VARIABLE: OFF}}
