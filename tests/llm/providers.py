"""A local HTTP server that behaves like a provider, well or badly, and models that ask it."""

import json
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

from runtime.llm.calling import Caller
from runtime.llm.chat import Chat
from runtime.llm.limits import Limits, Seams
from runtime.llm.model import Model, Price, Priced
from runtime.llm.shared import InMemory, Shared
from runtime.llm.types import Answer, LocalPolicy, Message, Request

CALM = Limits(backoff_s=0.01, backoff_max_s=0.02)
"""For a provider that answers: patience costs nothing, even on a busy machine."""
SHORT = Limits(connect_s=0.5, first_chunk_s=0.4, between_chunks_s=0.3, total_s=2.0, backoff_s=0.01, backoff_max_s=0.02)
"""For a provider that does not."""
HELLO = Request(messages=(Message("user", "say hello"),), max_tokens=8)

Behaviour = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """One request; the server's behaviour answers it."""

    protocol_version = "HTTP/1.1"

    @property
    def told(self) -> "Provider":
        assert isinstance(self.server, Provider)
        return self.server

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.told.asked.append(self.body)
        behave = self.told.behaviours[min(len(self.told.asked), len(self.told.behaviours)) - 1]
        try:
            behave(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def head(self, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.close_connection = True

    def event(self, data: Any) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def piece(self, text: str | None, reason: str | None = None) -> None:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
        self.event({"id": "x", "object": "chat.completion.chunk", "choices": [choice]})

    def wait(self) -> None:
        """Do nothing until the server ends."""
        self.told.over.wait()


class Provider(ThreadingHTTPServer):
    """Behaves in turn as told, and as the last one from then on."""

    daemon_threads = True

    def __init__(self, *behaviours: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviours: Sequence[Behaviour] = behaviours
        self.asked: list[Any] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the game."""


@contextmanager
def provider(*behaviours: Behaviour) -> Generator[Provider]:
    server = Provider(*behaviours)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def says(*texts: str, usage: tuple[int, int] | None = (7, 2)) -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.head()
        for text in texts:
            handler.piece(text)
        handler.piece("", "stop")
        if usage:
            used = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
            handler.event({"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": used})
        handler.event("[DONE]")

    return behave


def status(code: int, **headers: str) -> Behaviour:
    def behave(handler: Handler) -> None:
        body = json.dumps({"error": {"message": f"status {code}"}}).encode()
        handler.head(code, "application/json", content_length=str(len(body)), **headers)
        handler.wfile.write(body)

    return behave


def hangs(handler: Handler) -> None:
    handler.wait()


def stalls(handler: Handler) -> None:
    handler.head()
    handler.piece("hel")
    handler.wait()


def trickles(handler: Handler) -> None:
    """A byte at a time, for ever, and never a whole event."""
    handler.head()
    handler.wfile.write(b"data: ")
    while not handler.told.over.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def keeps_alive(handler: Handler) -> None:
    """Events without text, for ever."""
    handler.head()
    while not handler.told.over.wait(0.05):
        handler.piece(None)


def never_ends(handler: Handler) -> None:
    """Text, for ever."""
    handler.head()
    while not handler.told.over.wait(0.02):
        handler.piece("more ")


def html(handler: Handler) -> None:
    body = b"<html><body>Sign in to the hotel's network</body></html>"
    handler.head(200, "text/html", content_length=str(len(body)))
    handler.wfile.write(body)


def closes(handler: Handler) -> None:
    """The connection ends in the middle of the answer."""
    handler.head()
    handler.piece("hel")


def closes_in_a_chunk(handler: Handler) -> None:
    """The connection ends in the middle of an HTTP chunk."""
    handler.head(transfer_encoding="chunked")
    handler.wfile.write(b"40\r\ndata: {")


def closes_at_once(handler: Handler) -> None:
    handler.close_connection = True
    handler.connection.close()


def bad_json(handler: Handler) -> None:
    handler.head()
    handler.event('{"id": "x", "choices": [{"delta": ')


def odd_json(handler: Handler) -> None:
    """JSON, but of no known shape."""
    handler.head()
    handler.event([1, 2])


def tells_error(handler: Handler) -> None:
    handler.head()
    handler.event({"error": {"message": "overloaded"}})


@contextmanager
def asking(
    *urls: str,
    limits: Limits = CALM,
    shared: Shared | None = None,
    seams: Seams | None = None,
    local: LocalPolicy | None = None,
    count: Callable[[str], int] | None = None,
) -> Generator[Model]:
    """A model at the first URL, with the others behind it."""
    through = seams or Seams(rng=Random(0))
    memory = shared or InMemory()
    chain = [
        Priced(
            Caller(Chat(f"m{i}", url, key="k", limits=limits, count=count), limits, memory, through),
            Price(usd_per_million_in=1.0, usd_per_million_out=10.0),
        )
        for i, url in enumerate(urls)
    ]
    model = Model(chain, limits, through, local)
    try:
        yield model
    finally:
        model.close()


def streamed(model: Model, request: Request) -> tuple[list[str], Answer]:
    """The pieces that were handed on, and the answer."""
    asked, pieces = model.stream(request), list[str]()
    while True:
        try:
            pieces.append(next(asked))
        except StopIteration as end:
            return pieces, end.value
