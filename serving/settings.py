"""The serving file's model: every key, its type, its default and what it means."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from assembly.fields import Count, Port, Positive, Section, Text
from serving.rollout.plan import Plan
from telemetry.watched import Watched

TEAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""A team's name: it stands in paths, addresses and keys."""
GENERATED = "admin"
"""The name of the token that is made where the file names none."""


def _named(value: "dict[str, ServedTeam]") -> "dict[str, ServedTeam]":
    for name in value:
        if not TEAM.fullmatch(name):
            message = (
                f"{name!r} is no team's name: letters, digits, `_`, `.` and `-`, a letter or digit first, 64 at most"
            )
            raise PydanticCustomError("team", "{said}", {"said": message})
    return value


def _redis(value: str) -> str:
    if value == "embedded" or value.startswith(("embedded:", "redis://", "rediss://", "unix://", "env:")):
        return value
    raise PydanticCustomError("redis", "wants embedded, an address that starts with redis:// or rediss://, or env:NAME")


def _store(value: str) -> str:
    if value.startswith(("sqlite:///", "postgresql://", "env:")):
        return value
    raise PydanticCustomError("store", "wants sqlite:///PATH, postgresql://USER@HOST/DATABASE or env:NAME")


def _secret(value: str) -> str:
    if value.startswith(("env:", "file:")) and len(value.partition(":")[2]):
        return value
    raise PydanticCustomError("secret", "wants env:NAME or file:PATH: a token is never written into the file itself")


Reference = Annotated[str, AfterValidator(_secret)]
"""Where a secret is: ``env:NAME`` or ``file:PATH``."""


class ServedTeam(Section):
    """A team and where its versions are."""

    registry: Text
    """Where its exports are kept: a directory, or s3://… and the like."""
    current: str | None = None
    """The version that new sessions get when the server first starts; later, whatever was promoted."""
    replicas: Count = 1
    """Processes of each version."""
    threads: Count = 8
    """Turns that a process plays at once; the others wait."""
    greedy: bool = True
    """The likeliest call, in place of one drawn."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """What chance is drawn from, with scenario, agent and turn."""


class Http(Section):
    """Where and to whom it answers."""

    host: Text = "127.0.0.1"
    """The address to listen at. Others than this machine's own need tokens."""
    port: Port = 8000
    """0 takes a free one."""
    tokens: dict[str, Reference] = Field(default_factory=dict[str, Reference])
    """Who may call, by name: `env:NAME` or `file:PATH` of the bearer token. Without any, one called admin is made."""
    admins: Annotated[tuple[str, ...], Field(strict=False)] = (GENERATED,)
    """Whose tokens may also steer versions."""


class Limits(Section):
    """What keeps the server up."""

    in_flight: Count = 64
    """Requests that each router works on at once; more are answered 503 with Retry-After."""
    queue: Count = 64
    """Turns that may wait for a version at each router."""
    body_bytes: Count = 1_000_000
    """The largest body of a request (bytes)."""
    turn_s: Positive = 60.0
    """How long a turn may take, with all that is tried again (s)."""
    run_s: Positive = 300.0
    """How long a whole chain may take (s)."""
    idle_s: Positive = 86_400.0
    """When a session ends by itself because nobody asked for a turn (s)."""
    start_s: Positive = 600.0
    """How long a version may take to start and to show that it decides as at its export (s)."""


class Telemetry(Section):
    """Where it is shown how the server is."""

    port: Port = 9464
    """The main process' metrics, or the next free one; every other process has a port of its own."""
    otlp: str | None = None
    """A collector for metrics and traces: `http://HOST:4318`; null: none."""
    traces: str | None = None
    """A file of OTLP JSON lines that gets every session's trace; null: none."""


class Serving(Section):
    """What is served, where, and how a new version takes over."""

    teams: Annotated[dict[str, ServedTeam], Field(min_length=1), AfterValidator(_named)]
    """Teams by name."""
    directory: Text = "served"
    """Where the bundled Redis, the store and the made token are. (A folder `serving` would hide the package there.)"""
    redis: Annotated[str, AfterValidator(_redis)] = "embedded"
    """The bundled server, an address, or env:NAME of the variable that holds one."""
    store: Annotated[str, AfterValidator(_store)] | None = None
    """`sqlite:///…` or `postgresql://…`, or env:NAME; null: a file in the directory."""
    http: Http = Field(default_factory=Http)
    limits: Limits = Field(default_factory=Limits)
    rollout: Plan | None = None
    """By which steps, and on what evidence, a canary gets more of the new sessions or none any more; null: by hand."""
    telemetry: Telemetry = Field(default_factory=Telemetry)
    routers: Count = 2
    """Processes that take requests. With two, one may be killed."""
    ray_address: str | None = None
    """A running Ray cluster; null: one of its own on this machine."""

    @property
    def place(self) -> Path:
        """The directory."""
        return Path(self.directory).expanduser().absolute()

    @property
    def watched(self) -> Watched:
        """How processes show how they are."""
        told = self.telemetry
        traces = Path(told.traces).expanduser().absolute() if told.traces else None
        return Watched(targets=self.place / "targets", port=told.port, otlp=told.otlp, traces=traces)

    @property
    def redis_at(self) -> str:
        """Redis as processes connect to it."""
        return f"embedded:{self.place / 'redis'}" if self.redis == "embedded" else self.redis

    @property
    def store_at(self) -> str:
        """The store's URL, or a reference to it."""
        return self.store or f"sqlite:///{self.place / 'store.db'}"

    @property
    def tokens(self) -> dict[str, str]:
        """Where each token is."""
        return dict(self.http.tokens) or {GENERATED: f"file:{self.place / 'token'}"}
