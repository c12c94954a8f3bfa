"""A trained version in the place of the upstream, for one role: a real router, a real Redis, tiny language models."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from runtime.embedded import SCHEME, client_of, serve
from runtime.proxy.ours import Ours
from runtime.proxy.settings import Roles, Serve
from runtime.proxy.switch import Switch, key_of
from runtime.records import AnyRecord, Decided, EpisodeOpened, ModelCalled, Observed
from tests.conftest import WaitUntil
from tests.llm.providers import Provider, provider
from tests.proxy.house import recording, records_of, words
from tests.serving.house import House, house
from tests.serving.openai_team import SHOP, shop_version

TOKENS = {"admin": "admin-token-0123456789", "ada": "ada-token-0123456789"}
ROLES = Roles.model_validate(
    {
        "team": SHOP,
        "roles": {
            "buyer": {"prompt": "Buy.", "text": "hand_over", "says": "Over to you."},
            "clerk": {"prompt": "Sell."},
        },
    }
)
LOOK: Any = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}
CALLS = ("look", "hand_over")
"""What the buyer chooses among."""
BRIEF = {"role": "system", "content": "Buy. And be quick about it."}


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("first") / "version"
    shop_version(made, 0)
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, export: Path) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("shop"), SHOP, [export], TOKENS) as running:
        yield running


@pytest.fixture(scope="module")
def upstream() -> Iterator[Provider]:
    with provider(words("from upstream")) as running:
        yield running


def at(server: House, **more: Any) -> Serve:
    serving = Serve(url=f"{server.url}/v1", role="buyer", model=f"{SHOP}/buyer", key=TOKENS["ada"], ratio=1.0)
    return replace(serving, **more)


def asks(client: openai.OpenAI, case: int, *said: Any, brief: Any = BRIEF, **more: Any) -> tuple[Any, str]:
    messages: Any = [brief, {"role": "user", "content": json.dumps({"case": case})}, *said]
    answer = client.chat.completions.with_raw_response.create(model="gpt-x", messages=messages, tools=[LOOK], **more)
    return answer.parse(), answer.headers["x-session-id"]


def records(place: Path, session: str) -> list[AnyRecord]:
    return records_of(place, session, SHOP)


def test_the_version_decides_as_at_its_export(server: House, upstream: Provider, export: Path, tmp_path: Path) -> None:
    """Of what a program's role sees: the same calls; the one that hands over is heard as words."""
    golden = [g for g in json.loads((export / "golden.json").read_text()) if g["agent"] == "buyer"]
    first = [g for g in golden if "\n" not in g["text"] and all(g["mask"])]
    session = ""
    with recording(tmp_path / "s.db", upstream.url, roles=ROLES, serve=at(server)) as recorded:
        for each in first:
            case = json.loads(each["text"].removeprefix("case "))["case"]
            said, session = asks(recorded.client(), case)
            message = said.choices[0].message
            called = message.tool_calls[0].function.name if message.tool_calls else "hand_over"
            assert called == CALLS[each["action"]]
            assert message.tool_calls or message.content == "Over to you."
    made = records(tmp_path / "s.db", session)
    assert isinstance(made[0], EpisodeOpened)
    assert made[0].version == "v1"
    assert [r.text for r in made if isinstance(r, Observed)] == [first[-1]["text"]]
    assert {r.model.partition("/")[2] for r in made if isinstance(r, ModelCalled)} == {f"{SHOP}/buyer"}
    assert not upstream.asked


def test_a_stream_says_what_the_whole_answer_says(server: House, upstream: Provider, tmp_path: Path) -> None:
    """A program that streams is answered in a stream, with what it took where it asks for that."""
    with recording(tmp_path / "s.db", upstream.url, roles=ROLES, serve=at(server)) as recorded:
        client = recorded.client()
        for case in range(4):
            whole = asks(client, case)[0].choices[0]
            messages: Any = [BRIEF, {"role": "user", "content": json.dumps({"case": case})}]
            with client.chat.completions.stream(
                model="gpt-x", messages=messages, tools=[LOOK], stream_options={"include_usage": True}
            ) as stream:
                heard = stream.get_final_completion()
            told = heard.choices[0]
            assert (told.message.content or None) == whole.message.content
            calls = [
                [(c.function.name, c.function.arguments) for c in m.tool_calls or ()]
                for m in (told.message, whole.message)
            ]
            assert calls[0] == calls[1]
            assert told.finish_reason == whole.finish_reason
            assert heard.usage is not None
            assert heard.usage.prompt_tokens > 0


def test_only_its_role_is_served(server: House, upstream: Provider, tmp_path: Path) -> None:
    """The other one's questions go where they always went."""
    with recording(tmp_path / "s.db", upstream.url, roles=ROLES, serve=at(server)) as recorded:
        said, _ = asks(recorded.client(), 1, brief={"role": "system", "content": "Sell."})
    assert said.choices[0].message.content == "from upstream"


def test_new_conversations_get_their_share_and_stay(server: House, upstream: Provider, tmp_path: Path) -> None:
    """A share of a half, over forty conversations of two questions each: none changes sides."""
    sides: dict[str, list[bool]] = {}
    with recording(tmp_path / "s.db", upstream.url, roles=ROLES, serve=at(server, ratio=0.5)) as recorded:
        for case in range(40):
            client = recorded.client(x_session_id=f"conversation-{case}")
            for again in range(2):
                said, session = asks(client, case, *[{"role": "user", "content": "hurry"}] * again)
                theirs = said.choices[0].message.content == "from upstream"
                sides.setdefault(session, []).append(theirs)
    assert all(len(set(s)) == 1 for s in sides.values())
    assert 8 <= sum(s[0] for s in sides.values()) <= 32  # 99.99% of the binomial


def test_where_the_version_does_not_answer_the_upstream_does(
    server: House, upstream: Provider, tmp_path: Path, export: Path
) -> None:
    """The program notices nothing, the record says who answered, and the conversation stays the version's."""
    nowhere = at(server, url="http://127.0.0.1:9/v1")
    with recording(tmp_path / "s.db", upstream.url, roles=ROLES, serve=nowhere) as recorded:
        said, session = asks(recorded.client(x_session_id="s"), 1)
        assert said.choices[0].message.content == "from upstream"
    made = records(tmp_path / "s.db", session)
    (asked,) = [r for r in made if isinstance(r, ModelCalled)]
    assert (asked.degraded, asked.attempts) == (True, 2)
    assert asked.model.startswith(upstream.url.split("//")[1].split("/")[0])
    assert [r.agent for r in made if isinstance(r, Decided)] == ["buyer"]
    assert isinstance(made[0], EpisodeOpened)
    assert made[0].version == f"{SHOP}/buyer"


def test_a_conversation_goes_on_where_it_was_after_a_kill(
    server: House, upstream: Provider, tmp_path: Path, wait_until: WaitUntil
) -> None:
    """One that names itself: on the same side, with the next turn, whatever the share is now."""
    left = tmp_path / "left.db"
    with recording(tmp_path / "s.db", upstream.url, roles=ROLES, serve=at(server, ratio=0.0)) as recorded:
        asks(recorded.client(x_session_id="mine"), 2)
        wait_until(lambda: recorded.ledger.written, "the record")
        as_a_kill_leaves_it(recorded.place, left)
    with recording(left, upstream.url, roles=ROLES, serve=at(server, ratio=1.0)) as recorded:
        said, session = asks(recorded.client(x_session_id="mine"), 2, {"role": "user", "content": "hurry"})
        other, _ = asks(recorded.client(x_session_id="another"), 2)
    assert (session, said.choices[0].message.content) == ("mine", "from upstream")
    assert other.choices[0].message.content != "from upstream"
    assert [r.turn for r in records(left, "mine") if isinstance(r, Decided)] == [0, 1]


def as_a_kill_leaves_it(store: Path, copy: Path) -> None:
    with sqlite3.connect(store) as theirs, sqlite3.connect(copy) as mine:
        theirs.backup(mine)


def test_the_share_is_a_key_in_redis(server: House, upstream: Provider, tmp_path: Path, wait_until: WaitUntil) -> None:
    """An operator's word counts within a second, what is no share changes nothing, without it the command's holds."""
    with serve(tmp_path / "redis"):
        redis = client_of(f"{SCHEME}{tmp_path / 'redis'}")
        serving = at(server, ratio=0.0, redis=f"{SCHEME}{tmp_path / 'redis'}")
        ours = Ours(serving)
        switch = Switch(serving, ours)
        for written, share in (("100%", 1.0), ("0.25", 0.25), ("lots", 0.25), ("-1", 0.25)):
            redis.set(key_of(serving), written)
            switch.look()
            assert ours.share == share
        redis.delete(key_of(serving))
        switch.look()
        assert ours.share == 0.0
        with recording(tmp_path / "s.db", upstream.url, roles=ROLES, serve=serving) as recorded:
            redis.set(f"{SHOP}_buyer_ratio", "1")
            wait_until(
                lambda: asks(recorded.client(), 3)[0].choices[0].message.content != "from upstream", "the switch"
            )
