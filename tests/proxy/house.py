"""A proxy that listens in this process before a scripted provider, and what it has put into its store."""

import json
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import uvicorn

from runtime.proxy.app import application
from runtime.proxy.desk import Desk
from runtime.proxy.ledger import Ledger
from runtime.proxy.settings import Roles, Settings
from runtime.records import AnyRecord
from runtime.store import history, open_store
from tests.llm.providers import Behaviour, Handler
from tests.serving.conftest import free_port

KEY = "sk-a-secret-of-the-users-own-0123456789"
TEAM = "desk"
TOOL = {
    "type": "function",
    "function": {
        "name": "track",
        "description": "Where a parcel is.",
        "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]},
    },
}
ROLES = Roles.model_validate(
    {
        "team": TEAM,
        "roles": {
            "triage": {"prompt": "You are triage.", "text": "hand_over"},
            "resolver": {"prompt": "You are the resolver."},
        },
    }
)


@dataclass(frozen=True)
class Recording:
    """A proxy at work."""

    url: str
    place: Path
    """The store's file."""
    ledger: Ledger

    def client(self, **headers: str) -> openai.OpenAI:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=KEY, max_retries=0, default_headers=given)

    def records(self, session: str) -> list[AnyRecord]:
        return records_of(self.place, session)


def records_of(place: Path, session: str, team: str = TEAM) -> list[AnyRecord]:
    store = open_store(f"sqlite:///{place}")
    try:
        return store.read(lambda c: history.of_session(c, team, session))
    finally:
        store.close()


@contextmanager
def recording(place: Path, upstream: str, roles: Roles = ROLES, **settings: Any) -> Generator[Recording]:
    """A proxy on a free port; at the end of the block everything is on record."""
    made = Settings(upstream=upstream, store=f"sqlite:///{place}", roles=roles, port=free_port(), **settings)
    ledger = Ledger(open_store(made.store, "normal"), roles.team, made.bounds.unwritten)
    with listening(application(made, Desk(made, ledger)), made.port) as url:
        yield Recording(url, place, ledger)


@contextmanager
def listening(app: Any, port: int) -> Generator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="critical", server_header=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    started = threading.Event()
    while not server.started and thread.is_alive():
        started.wait(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)


def whole(message: Mapping[str, Any], finish: str = "stop", **more: Any) -> Behaviour:
    """Answers with a completion, at once."""

    def behave(handler: Handler) -> None:
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
        told = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        body = json.dumps({**told, **more}).encode()
        handler.head(200, "application/json", content_length=str(len(body)), x_request_id="theirs")
        handler.wfile.write(body)

    return behave


def words(text: str) -> Behaviour:
    return whole({"content": text})


def calls(*made: tuple[str, str, Mapping[str, Any]]) -> Behaviour:
    """Answers with tool calls: id, tool, arguments."""
    listed = [
        {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(args)}}
        for name, tool, args in made
    ]
    return whole({"content": None, "tool_calls": listed}, "tool_calls")


def streams(
    deltas: Sequence[Mapping[str, Any]], finish: str = "stop", then: Callable[[Handler], None] | None = None
) -> Behaviour:
    """Answers with a stream of these deltas, and does something else before the last event."""

    def behave(handler: Handler) -> None:
        handler.head()
        for delta in deltas:
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            handler.event({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})
        if then is not None:
            then(handler)
        choice = {"index": 0, "delta": {}, "finish_reason": finish}
        handler.event({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})
        handler.event("[DONE]")

    return behave


def by_role(behaviours: Mapping[str, Behaviour]) -> Behaviour:
    """Answers by the beginning of the system message."""

    def behave(handler: Handler) -> None:
        brief = handler.body["messages"][0]["content"]
        behaviours[next(b for b in behaviours if brief.startswith(b))](handler)

    return behave
