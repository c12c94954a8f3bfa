"""Whatever the upstream does, the program meets it as it would without the proxy."""

import gzip
import json
import logging
import socket
import threading
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from runtime.proxy.settings import Bounds
from runtime.records import Decided, EpisodeEnded, ModelCalled, ToolCall
from tests.conftest import WaitUntil
from tests.llm.providers import Behaviour, Handler, closes, hangs, provider, status
from tests.proxy.house import KEY, TOOL, Recording, calls, recording, streams, words

ASKS = [{"role": "user", "content": "Where is order 1042?"}]
CALLING = [
    {"role": "assistant", "content": None},
    {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "track", "arguments": ""}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '{"order"'}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": ": 1042}"}}]},
]


def sent(url: str, **more: Any) -> httpx2.Response:
    headers = {"authorization": f"Bearer {KEY}", "x-session-id": "s"}
    body = {"model": "m", "messages": ASKS, **more}
    return httpx2.post(f"{url}/chat/completions", json=body, headers=headers, timeout=20)


def decided(recorded: Recording) -> list[ToolCall]:
    return [r.call for r in recorded.records("s") if isinstance(r, Decided)]


@pytest.mark.parametrize(
    "behaviour", [streams(CALLING, "tool_calls"), calls(("c1", "track", {"order": 1042}))], ids=["stream", "whole"]
)
def test_answers_are_the_upstreams_byte_for_byte(behaviour: Behaviour, tmp_path: Path) -> None:
    """Status, headers and body of a tool call, streamed or not; and the call is on record."""
    with provider(behaviour) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        direct, through = sent(upstream.url, tools=[TOOL]), sent(f"{recorded.url}/v1", tools=[TOOL])
        assert upstream.asked[0] == upstream.asked[1]
    assert (through.status_code, through.content) == (direct.status_code, direct.content)
    assert through.headers["content-type"] == direct.headers["content-type"]
    assert through.headers.get("x-request-id") == direct.headers.get("x-request-id")
    assert decided(recorded) == [ToolCall(tool="track", args={"order": 1042})]


def test_a_stream_is_passed_on_as_it_comes(tmp_path: Path) -> None:
    """The first event is there while the upstream has not yet said the last."""
    more = threading.Event()

    def waits(_: Handler) -> None:
        assert more.wait(20)

    behaviour = streams([{"role": "assistant", "content": "We "}, {"content": "look"}], then=waits)
    with provider(behaviour) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        stream = recorded.client(x_session_id="s").chat.completions.create(model="m", messages=ASKS, stream=True)
        assert next(stream).choices[0].delta.content == "We "
        assert not more.is_set()
        more.set()
        assert "".join(c.choices[0].delta.content or "" for c in stream) == "look"
    assert decided(recorded) == [ToolCall(tool="answer", args={"text": "We look"})]


@pytest.mark.parametrize("code", [400, 401, 404, 422, 429, 500, 503])
def test_errors_are_the_upstreams(code: int, tmp_path: Path) -> None:
    """Status, body and the time to wait; on record stands that nobody answered."""
    with provider(status(code, retry_after="7")) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        direct, through = sent(upstream.url), sent(f"{recorded.url}/v1")
    assert (through.status_code, through.content) == (code, direct.content)
    assert through.headers["retry-after"] == "7"
    assert [(r.model, r.degraded) for r in recorded.records("s") if isinstance(r, ModelCalled)] == [("", True)]
    assert not decided(recorded)


def test_a_call_that_is_repeated_after_an_error_is_the_same_conversation(tmp_path: Path) -> None:
    """Its turn is the one that had failed, whatever the client calls itself."""
    with provider(status(500), words("Found.")) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        client = recorded.client()
        with pytest.raises(openai.InternalServerError) as failed:
            client.chat.completions.create(model="m", messages=ASKS)
        answer = client.chat.completions.with_raw_response.create(model="m", messages=ASKS)
        session = answer.headers["x-session-id"]
        assert failed.value.response.headers["x-session-id"] == session
    made = recorded.records(session)
    assert [(r.turn, r.degraded) for r in made if isinstance(r, ModelCalled)] == [(0, True), (0, False)]
    assert [r.turn for r in made if isinstance(r, Decided)] == [0]


def test_an_upstream_that_is_not_there_is_an_error_of_its_kind(tmp_path: Path) -> None:
    """502 in the shape that clients know, and no word of the key."""
    with recording(tmp_path / "s.db", "http://127.0.0.1:9/v1") as recorded:
        answer = sent(f"{recorded.url}/v1")
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream_unreachable"
    assert KEY not in answer.text


def test_a_stream_that_breaks_off_ends_where_it_did(tmp_path: Path) -> None:
    """No event more than the upstream's, and half an answer is no decision."""
    with provider(closes) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        assert sent(f"{recorded.url}/v1", stream=True).content == sent(upstream.url, stream=True).content
    assert not decided(recorded)


def test_an_answer_that_is_too_short_does_not_look_whole(tmp_path: Path) -> None:
    """The connection breaks off as the upstream's did."""

    def cut(handler: Handler) -> None:
        handler.head(200, "application/json", content_length="1000")
        handler.wfile.write(b'{"choices": [')

    with (
        provider(cut) as upstream,
        recording(tmp_path / "s.db", upstream.url) as recorded,
        pytest.raises(httpx2.RemoteProtocolError),
    ):
        sent(f"{recorded.url}/v1")
    assert not decided(recorded)


def test_a_client_that_hangs_up_frees_the_upstream(tmp_path: Path, wait_until: WaitUntil) -> None:
    """The answer in the making is broken off, too, and is no decision."""
    gone = threading.Event()

    def until_it_is_gone(handler: Handler) -> None:
        try:
            while not handler.told.over.wait(0.02):
                handler.piece("more ")
        except OSError:
            gone.set()
            raise

    behaviour = streams([{"content": "We "}], then=until_it_is_gone)
    with provider(behaviour) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        stream = recorded.client(x_session_id="s").chat.completions.create(model="m", messages=ASKS, stream=True)
        assert next(stream).choices[0].delta.content == "We "
        stream.close()
        wait_until(gone.is_set, "the upstream to hear of it")
        wait_until(lambda: recorded.ledger.written, "the record of it")
    assert not decided(recorded)
    assert [r.model for r in recorded.records("s") if isinstance(r, ModelCalled)] == [""]


def test_compressed_answers_can_be_read_too(tmp_path: Path) -> None:
    """An upstream that compresses unasked is passed on as it is, and its copy is unpacked."""

    def packed(handler: Handler) -> None:
        choice = {"index": 0, "message": {"role": "assistant", "content": "Found."}, "finish_reason": "stop"}
        body = gzip.compress(json.dumps({"choices": [choice]}).encode())
        handler.head(200, "application/json", content_length=str(len(body)), content_encoding="gzip")
        handler.wfile.write(body)

    with provider(packed) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        answer = sent(f"{recorded.url}/v1")
        assert answer.json()["choices"][0]["message"]["content"] == "Found."
        assert answer.headers["content-encoding"] == "gzip"
    assert decided(recorded) == [ToolCall(tool="answer", args={"text": "Found."})]


def test_keys_are_passed_on_and_kept_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not in the store's bytes, not in what is logged: whether all goes well, or nothing does."""
    shown = list[str]()

    def looks(handler: Handler) -> None:
        shown.append(handler.headers["authorization"])
        words("Found.")(handler)

    caplog.set_level(logging.DEBUG)
    with provider(looks, status(401), closes) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        for _ in range(3):
            sent(f"{recorded.url}/v1")
        bytes_kept = b"".join(f.read_bytes() for f in tmp_path.iterdir())
    bytes_kept += b"".join(f.read_bytes() for f in tmp_path.iterdir())
    assert shown == [f"Bearer {KEY}"]
    assert b"Found." in bytes_kept
    assert KEY.encode() not in bytes_kept
    assert KEY not in caplog.text


def test_what_one_program_is_given_is_not_sent_by_another(tmp_path: Path) -> None:
    """Cookies of the upstream reach the client that they were set for, and nobody else."""
    heard = list[Any]()

    def sets(handler: Handler) -> None:
        heard.append(handler.headers.get("cookie"))
        handler.head(200, "application/json", set_cookie="who=you; Path=/")
        handler.wfile.write(b"{}")

    with provider(sets) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        assert [sent(f"{recorded.url}/v1").headers["set-cookie"] for _ in range(2)] == ["who=you; Path=/"] * 2
    assert heard == [None, None]


def test_text_that_cannot_be_kept_goes_through(tmp_path: Path) -> None:
    """Half a character, as JSON can say it: untouched for the upstream, a question mark on record."""
    half = b'"content": "\\ud83d"'
    body = b'{"model": "m", "messages": [{"role": "system", %b}, {"role": "user", %b}]}' % (half, half)
    with provider(words("\ud83d hi")) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        headers = {"content-type": "application/json", "x-session-id": "s"}
        answer = httpx2.post(f"{recorded.url}/v1/chat/completions", content=body, headers=headers)
        assert answer.json()["choices"][0]["message"]["content"] == "\ud83d hi"
        assert upstream.asked[0]["messages"][0]["content"] == "\ud83d"
    assert decided(recorded) == [ToolCall(tool="answer", args={"text": "? hi"})]


def test_what_is_no_chat_goes_through_unrecorded(tmp_path: Path) -> None:
    """Embeddings, bodies that are no JSON: untouched."""
    with provider(words("as it is")) as upstream, recording(tmp_path / "s.db", upstream.url) as recorded:
        answer = httpx2.post(f"{recorded.url}/v1/embeddings?a=b", json={"input": "x"})
        assert answer.status_code == 200
        assert upstream.asked == [{"input": "x"}]
        assert "x-session-id" not in answer.headers
    assert recorded.ledger.written == 0


def test_a_body_is_bounded(tmp_path: Path) -> None:
    """413, as soon as its length is known."""
    bounds = Bounds(body_bytes=1000)
    with provider(words("no")) as upstream, recording(tmp_path / "s.db", upstream.url, bounds=bounds) as recorded:
        assert sent(f"{recorded.url}/v1", user="x" * 1000).status_code == 413
        assert not upstream.asked


def test_an_answer_that_is_too_long_to_keep_goes_through(tmp_path: Path) -> None:
    """Whole; the conversation lacks it, and so has no end and is not learnt from."""
    bounds = Bounds(answer_bytes=1000)
    long = "x" * 2000
    with (
        provider(words("Found."), words(long)) as upstream,
        recording(tmp_path / "s.db", upstream.url, bounds=bounds) as recorded,
    ):
        assert "Found." in sent(f"{recorded.url}/v1").text
        assert sent(f"{recorded.url}/v1").json()["choices"][0]["message"]["content"] == long
    assert decided(recorded) == [ToolCall(tool="answer", args={"text": "Found."})]
    assert not [r for r in recorded.records("s") if isinstance(r, EpisodeEnded)]


def test_only_so_many_are_worked_on_at_once(tmp_path: Path, wait_until: WaitUntil) -> None:
    """The next one is told to come again, and can when there is room."""
    bounds = Bounds(open=1)
    with (
        provider(hangs, words("Found.")) as upstream,
        recording(tmp_path / "s.db", upstream.url, bounds=bounds) as recorded,
    ):
        address = recorded.url.removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1]))) as waiting:
            body = json.dumps({"model": "m", "messages": ASKS}).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            waiting.sendall(head.encode() + body)
            wait_until(lambda: upstream.asked, "the first request")
            refused = sent(f"{recorded.url}/v1")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        wait_until(lambda: sent(f"{recorded.url}/v1").status_code == 200, "room again")


def test_an_answer_takes_only_so_long(tmp_path: Path) -> None:
    """Then it is a 504 of ours: nothing hangs for ever."""
    bounds = Bounds(answer_s=0.5)
    with provider(hangs) as upstream, recording(tmp_path / "s.db", upstream.url, bounds=bounds) as recorded:
        assert sent(f"{recorded.url}/v1").status_code == 504


def test_a_token_is_wanted_where_there_is_one(tmp_path: Path) -> None:
    """Beside the upstream's key, which has its own place; it is not passed on."""
    heard = list[Any]()

    def looks(handler: Handler) -> None:
        heard.append(handler.headers.get("x-proxy-token"))
        words("Found.")(handler)

    token = "t" * 20
    with provider(looks) as upstream, recording(tmp_path / "s.db", upstream.url, token=token) as recorded:
        assert sent(f"{recorded.url}/v1").status_code == 401
        client = recorded.client(x_proxy_token=token)
        client.chat.completions.create(model="m", messages=ASKS)
    assert heard == [None]
