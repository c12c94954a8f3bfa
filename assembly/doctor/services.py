"""Probes of services: does the name resolve, is the port open, does the protocol answer, are we let in?"""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import urlsplit

from assembly.doctor.examining import Seen
from runtime.embedded.client import CLOCK_S
from runtime.errors import ServiceUnavailable
from runtime.seams import now
from telemetry.otlp import signal_url

Probe = Callable[[str], Seen]
ANSWER_S = 4.0
"""How long a connection, or an answer, may take, s."""
OLDEST_POSTGRES = 12
UNAUTHORIZED = (401, 403)
NETWORKED = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "ceph", "glusterfs")
"""File systems on which SQLite's write-ahead log cannot be shared between processes."""


def redis(declared: str) -> Seen:
    """Let in, new enough, its clock near ours."""
    from runtime.embedded import connect

    client = connect(declared)
    try:
        info = client.info("server")
    finally:
        client.close()
    return Seen(what=f"version {info.get('valkey_version') or info.get('redis_version')} answers")


def referenced(probe: Probe, reference: str) -> Seen:
    """Look at an address, or at what the variable of ``env:NAME`` holds. Raises ServiceUnavailable for one not set."""
    if not reference.startswith("env:"):
        return probe(reference)
    name = reference.removeprefix("env:")
    value = os.environ.get(name)
    if not value:
        raise ServiceUnavailable(reference, f"the variable {name} is not set", f"export {name}")
    return probe(value)


def reachable(host: str, port: int, declared: str, remedy: str) -> None:
    """The name resolves and the port is open. Raises ServiceUnavailable that says which of the two it is not."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ServiceUnavailable(declared, f"the name {host!r} does not resolve ({error})", remedy) from None
    try:
        socket.create_connection((host, port), timeout=ANSWER_S).close()
    except OSError as error:
        seen = f"nothing listens at {addresses[0][4][0]} port {port} ({error.strerror or error})"
        raise ServiceUnavailable(declared, seen, remedy) from None


def at_address(url: str, usual_port: int) -> tuple[str, int]:
    """Host and port of an address. Raises ServiceUnavailable for one that has none."""
    parts = urlsplit(url if "://" in url else f"//{url}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ServiceUnavailable(url, f"is no address ({error})", "write HOST:PORT") from None
    if not host:
        raise ServiceUnavailable(url, "names no host", "write HOST:PORT")
    return host, port or (443 if parts.scheme == "https" else usual_port)


def postgres(url: str) -> Seen:
    """The database is there and lets us in; version and clock."""
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=int(ANSWER_S)) as connection:
            row = connection.execute("SELECT current_setting('server_version_num')::int, now()").fetchone()
    except psycopg.Error as error:
        seen = " ".join(str(error).split())
        raise ServiceUnavailable("postgresql", seen, "start it, or correct user, password and database") from None
    assert row is not None
    major = row[0] // 10_000
    if major < OLDEST_POSTGRES:
        raise ServiceUnavailable("postgresql", f"is version {major}", f"use PostgreSQL {OLDEST_POSTGRES} or newer")
    ahead_s = abs(row[1].timestamp() - now())
    if ahead_s > CLOCK_S:
        raise ServiceUnavailable("postgresql", f"its clock is {ahead_s:.0f} s from ours", "set both clocks by NTP")
    return Seen(what=f"version {major} lets us in")


def sqlite(path: Path) -> Seen:
    """The file, or the folder it will be made in, can be written, and lies on a disk of this machine."""
    folder = next(p for p in (path.parent, *path.parents) if p.exists())
    try:
        if path.exists():
            path.open("r+b").close()
        TemporaryFile(dir=folder).close()  # the log lies beside it
    except OSError as error:
        seen = f"{error.filename or folder} cannot be written ({error.strerror})"
        raise ServiceUnavailable("sqlite", seen, "choose another place, or mend its mode") from None
    kind = file_system(folder)
    if kind in NETWORKED:
        remedy = "put it on a disk of this machine, or use postgresql://"
        raise ServiceUnavailable("sqlite", f"{folder} is on {kind}, which does not carry SQLite's log", remedy)
    return Seen(what=f"{path} can be written")


def file_system(folder: Path) -> str:
    """Its type, such as ``ext4``; empty where it cannot be told."""
    import psutil

    mounts = {p.mountpoint: p.fstype for p in psutil.disk_partitions(all=True)}
    return next((mounts[str(p)] for p in (folder.resolve(), *folder.resolve().parents) if str(p) in mounts), "")


def otlp(endpoint: str) -> Seen:
    """A collector takes an empty report."""
    import httpx2

    remedy = "start the collector, or leave telemetry.otlp out"
    reachable(*at_address(endpoint, 4318), endpoint, remedy)
    url = signal_url(endpoint, "metrics")
    try:
        answer = httpx2.post(url, content=b"", headers={"content-type": "application/x-protobuf"}, timeout=ANSWER_S)
    except httpx2.HTTPError as error:
        raise ServiceUnavailable(endpoint, f"does not speak HTTP ({type(error).__name__})", remedy) from None
    if answer.status_code in UNAUTHORIZED:
        raise ServiceUnavailable(endpoint, f"refuses us ({answer.status_code})", "set OTEL_EXPORTER_OTLP_HEADERS")
    if not answer.is_success:
        seen = f"answers {answer.status_code} to {url}"
        raise ServiceUnavailable(endpoint, seen, "name the collector's OTLP/HTTP port, usually 4318")
    return Seen(what="takes reports")


def endpoint(base_url: str, model: str, key_variable: str) -> Seen:
    """An OpenAI-compatible endpoint lets us in, and has the model."""
    import httpx2

    remedy = "start it, or correct base_url"
    reachable(*at_address(base_url, 80), base_url, remedy)
    key = os.environ.get(key_variable, "")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx2.get(f"{base_url.rstrip('/')}/models", headers=headers, timeout=ANSWER_S)
    except httpx2.HTTPError as error:
        raise ServiceUnavailable(base_url, f"does not speak HTTP ({type(error).__name__})", remedy) from None
    if answer.status_code in UNAUTHORIZED:
        held = "the key in it is refused" if key else "is not set"
        raise ServiceUnavailable(base_url, f"refuses us ({answer.status_code})", f"{key_variable}: {held}; export it")
    known = _models(answer.content) if answer.is_success else None
    if known is None:
        return Seen(what=f"answers, but does not list its models ({answer.status_code})", state="warning")
    if model not in known:
        shown = ", ".join(sorted(known)[:5]) or "none"
        return Seen(what=f"has no model {model!r} in its list ({shown})", state="warning", remedy="correct model")
    return Seen(what=f"has {model}")


def _models(content: bytes) -> set[str] | None:
    try:
        return {str(each["id"]) for each in json.loads(content)["data"]}
    except (ValueError, KeyError, TypeError):
        return None


def port_free(host: str, port: int) -> Seen:
    """Nobody listens there yet."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            raise ServiceUnavailable(
                f"{host}:{port}",
                f"cannot be listened at ({error.strerror})",
                "stop what has it, or choose another port",
            ) from None
    return Seen(what="free")
