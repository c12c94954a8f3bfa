"""What a file declares and what is there: each failure by name, with its place, what was seen and what to do."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from assembly.doctor import Checkup, as_json, examined, told, waited_for
from assembly.doctor.examining import Seen
from assembly.doctor.services import postgres as look_at_postgres
from assembly.doctor.services import redis as look_at_redis
from assembly.team_check import Known, accept
from rewards.terms import TERMS
from runtime.embedded import serve
from runtime.embedded.places import Places
from runtime.errors import ServiceUnavailable
from tests.postgres import empty_postgres, postgres
from trainers.doctor import main

__all__ = ["empty_postgres", "postgres"]

SHOP = Path(__file__).parents[1] / "trainers" / "little_shop.yaml"
CLOSED = "127.0.0.1:9"


class Provider(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint with a key, and a collector, as far as the doctor looks."""

    def do_GET(self) -> None:
        """The list of models, for who has the key."""
        if self.headers.get("authorization") != "Bearer right":
            self._answer(401, b"{}")
        else:
            self._answer(200, json.dumps({"data": [{"id": "small"}]}).encode())

    def do_POST(self) -> None:
        """An empty report is taken."""
        self._answer(200 if self.path == "/v1/metrics" else 404, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as its parent calls it
        """Be silent."""


@contextlib.contextmanager
def provider(port: int = 0) -> Generator[int]:
    server = HTTPServer(("127.0.0.1", port), Provider)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asked(capsys: pytest.CaptureFixture[str], *args: str, file: Path = SHOP) -> tuple[int, dict[str, dict[str, Any]]]:
    """The command with --json: its exit code, and its findings by name."""
    code = main([str(file), "--json", *(part for a in args for part in ("--set", a))])
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is (code == 0)
    return code, {f["name"]: f for f in report["findings"]}


def test_nothing_declared_nothing_missing(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that declares no service wants room on this machine, and no more."""
    code, found = asked(capsys, "telemetry.port=0")
    assert code == 0
    assert found.keys() == {"disk", "memory", "open files"}


def test_what_is_away_is_no_fault_of_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Exit 3, each service with the line that declares it; all looked at within five seconds."""
    lines = SHOP.read_text().replace("gates: {live: false}\n", "")
    file = tmp_path / "away.yaml"
    file.write_text(f"{lines}redis: redis://:hidden@{CLOSED}/0\ntelemetry:\n  port: 0\n  otlp: http://{CLOSED}\n")
    began = time.monotonic()
    code, found = asked(capsys, f"resources.ray_address='{CLOSED}'", file=file)
    assert code == 3
    assert time.monotonic() - began < 5
    last = len(file.read_text().splitlines())
    assert found["redis"]["where"] == f"away.yaml, line {last - 3}: redis"
    assert found["otlp"]["where"] == f"away.yaml, line {last}: telemetry.otlp"
    assert found["ray"]["where"] == "--set resources.ray_address"
    for name in ("redis", "otlp", "ray"):
        assert found[name]["state"] == "failed"
        assert "refused" in found[name]["seen"]
        assert "start" in found[name]["remedy"]
    assert "hidden" not in json.dumps(found)


def test_recorded_sessions_that_are_away_are_no_fault_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """The file with its team is accepted, and the doctor names the database."""
    live = f"scenarios={{from: live, store: 'postgresql://nobody:hidden@{CLOSED}/none', eval: {{count: 5}}}}"
    accept(SHOP, [live], Known(TERMS))
    code, found = asked(capsys, live, "telemetry.port=0")
    assert (code, found["recorded sessions"]["state"]) == (3, "failed")
    assert found["recorded sessions"]["where"] == "--set scenarios"
    assert "hidden" not in json.dumps(found)


def test_a_file_that_is_refused_is_no_missing_service(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, and nothing is looked for."""
    assert main([str(SHOP), "--set", "resources.env_runner=1"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_a_redis_that_answers_and_one_that_refuses(tmp_path: Path) -> None:
    """The bundled server as a declared one: with its password, and with a wrong one."""
    with serve(tmp_path) as server:
        places = Places.of(server.reference.removeprefix("embedded:"))
        password, at = places.password(), places.socket
        assert look_at_redis(f"unix://:{password}@{at}").state == "ok"
        with pytest.raises(ServiceUnavailable, match="refuses us"):
            look_at_redis(f"unix://:wrong@{at}")


def test_a_redis_by_its_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that is not set is missing, not a mistake of the file; what it holds is looked at, and never shown."""
    file = tmp_path / "by_name.yaml"
    file.write_text(SHOP.read_text().replace("gates: {live: false}\n", "redis: env:THE_BUS\n"))
    code, found = asked(capsys, "telemetry.port=0", file=file)
    assert (code, found["redis"]["state"], found["redis"]["remedy"]) == (3, "failed", "export THE_BUS")
    with serve(tmp_path / "redis") as server:
        places = Places.of(server.reference.removeprefix("embedded:"))
        monkeypatch.setenv("THE_BUS", f"unix://:{places.password()}@{places.socket}")
        code, found = asked(capsys, "telemetry.port=0", file=file)
    assert (code, found["redis"]["state"], found["redis"]["declared"]) == (0, "ok", "env:THE_BUS")
    assert places.password() not in json.dumps(found)


@pytest.fixture
def prompted(tmp_path: Path) -> Path:
    """The little shop with a clerk who is asked over HTTP."""
    text = SHOP.read_text().replace(
        "  clerk: {kind: encoder, feature_size: 64, hidden: [16]}",
        "  clerk: {kind: prompted, model: small, base_url: 'http://127.0.0.1:${PORT}/v1', key_variable: CLERK_KEY}",
    )
    file = tmp_path / "prompted.yaml"
    file.write_text(text)
    return file


def test_endpoints_let_us_in_and_have_the_model(
    prompted: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is named, never shown; a model that is not listed is a warning, since lists may be short."""
    with provider() as port:
        monkeypatch.setenv("PORT", str(port))
        code, found = asked(capsys, "telemetry.port=0", file=prompted)
        assert code == 3
        assert found["endpoint of clerk"]["remedy"] == "CLERK_KEY: is not set; export it"
        monkeypatch.setenv("CLERK_KEY", "wrong")
        code, found = asked(capsys, "telemetry.port=0", file=prompted)
        assert (code, found["endpoint of clerk"]["remedy"]) == (3, "CLERK_KEY: the key in it is refused; export it")
        assert "wrong" not in json.dumps(found)
        monkeypatch.setenv("CLERK_KEY", "right")
        code, found = asked(capsys, f"telemetry.otlp='http://127.0.0.1:{port}'", file=prompted)
        assert (code, found["endpoint of clerk"]["state"], found["otlp"]["state"]) == (0, "ok", "ok")
        code, found = asked(capsys, "policies.clerk.model=large", file=prompted)
        assert (code, found["endpoint of clerk"]["state"]) == (0, "warning")
        assert "(small)" in found["endpoint of clerk"]["seen"]


def test_who_never_answers_is_not_waited_for(
    prompted: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("PORT", str(silent.getsockname()[1]))
        began = time.monotonic()
        code, found = asked(capsys, file=prompted)
        assert code == 3
        assert time.monotonic() - began < 8
        assert found["endpoint of clerk"]["state"] == "failed"


def test_a_service_that_comes_up_late_is_waited_for(
    prompted: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--wait: said once, and gone on as soon as it is there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("PORT", str(port))
    monkeypatch.setenv("CLERK_KEY", "right")
    up, over = threading.Event(), threading.Event()

    def late() -> None:
        up.wait()
        with provider(port):
            over.wait()

    thread = threading.Thread(target=late)
    thread.start()
    threading.Timer(1.0, up.set).start()
    try:
        code = main([str(prompted), "--wait", "30", "--set", "telemetry.port=0"])
    finally:
        up.set()
        over.set()
        thread.join()
    printed = capsys.readouterr()
    assert code == 0, printed
    assert printed.err.count("waiting up to 30 s for endpoint of clerk") == 1


def test_missing_weights(capsys: pytest.CaptureFixture[str], prompted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 3 with the way to get them; nothing is downloaded."""
    monkeypatch.setenv("PORT", "9")
    (prompted.parent / "empty").mkdir()
    wanted = {
        "nobody/nothing": "hf download nobody/nothing",
        "./empty": "config.json",
        "/no/such/model": "/no/such/model is not here",
    }
    for model, seen in wanted.items():
        code, found = asked(capsys, f"policies.clerk={{kind: prompted, model: {model}}}", file=prompted)
        assert code == 3
        assert seen in found["model of clerk"]["seen"]


def test_a_file_of_weights_is_looked_at_as_it_lies(
    capsys: pytest.CaptureFixture[str], prompted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GGUF file is there or not: converting it, which takes half a minute, is left to who loads it."""
    monkeypatch.setenv("PORT", "9")
    (prompted.parent / "small.gguf").write_bytes(b"GGUF")
    code, found = asked(capsys, "policies.clerk={kind: prompted, model: ./small.gguf}", file=prompted)
    assert (code, found["model of clerk"]["state"]) == (0, "ok"), found
    assert "small.gguf" in found["model of clerk"]["seen"]


def test_an_address_that_no_database_driver_takes_is_a_finding() -> None:
    """As one that nobody answers at, and not the end of the doctor."""
    with pytest.raises(ServiceUnavailable, match="nonsense"):
        look_at_postgres("postgresql://tests@127.0.0.1:9/postgres?nonsense=1")


def test_a_taken_port_is_no_failure_where_the_next_one_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    """The metrics port; Ray's dashboard has no second choice."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, found = asked(capsys, f"telemetry.port={port}")
        assert (code, found["metrics port"]["state"]) == (0, "ok")
        assert "the next free one" in found["metrics port"]["seen"]
        code, found = asked(capsys, f"resources.dashboard={{port: {port}}}")
        assert (code, found["ray dashboard"]["state"]) == (3, "failed")


def test_a_serving_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command: store, registry, tokens, port."""
    file = tmp_path / "serving.yaml"
    file.write_text(
        "teams: {shop: {registry: registry}}\nredis: env:THE_REDIS\nstore: postgresql://nobody@127.0.0.1:9/none\n"
        "http:\n  port: 0\n  tokens: {admin: env:THE_TOKEN}\n"
    )
    code, found = asked(capsys, file=file)
    assert code == 3
    assert found["redis"]["remedy"] == "export THE_REDIS"
    assert found["store"]["state"] == "failed"
    assert found["store"]["where"] == "serving.yaml, line 3: store"
    assert found["token admin"]["state"] == "failed"
    assert found["registry of shop"]["state"] == "warning"
    monkeypatch.setenv("THE_TOKEN", "x" * 40)
    code, found = asked(capsys, "redis=embedded", "store=null", file=file)
    assert code == 0, found


def test_sqlite_wants_a_place_that_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before anything is served."""
    file = tmp_path / "serving.yaml"
    file.write_text("teams: {shop: {registry: registry}}\nstore: sqlite:////proc/store.db\nhttp: {port: 0}\n")
    code, found = asked(capsys, file=file)
    assert (code, found["store"]["state"]) == (3, "failed")


def test_all_are_looked_at_side_by_side() -> None:
    """The slowest decides how long it takes; who is late has failed, and keeps nobody from ending."""
    never, began = threading.Event(), time.monotonic()

    def slow() -> Seen:
        never.wait(0.3)
        return Seen(what="came")

    def silent() -> Seen:
        never.wait(60)
        return Seen(what="too late")

    def checkup(name: str, probe: Any) -> Checkup:
        return Checkup(name=name, declared=name, where="here", probe=probe, remedy="start it", within_s=1.0)

    found = examined([*(checkup(f"slow-{k}", slow) for k in range(20)), checkup("silent", silent)])
    assert time.monotonic() - began < 3
    never.set()
    assert [f.state for f in found] == ["ok"] * 20 + ["failed"]
    assert found[-1].seen == "gives no answer within 1 s"
    assert "do        start it" in told(found)
    assert json.loads(as_json(found))["ok"] is False


def test_waiting_ends_when_its_time_is_up() -> None:
    """And says what is still missing."""

    def away() -> Seen:
        raise ServiceUnavailable("it", "is away", "start it")

    said: list[str] = []
    (found,) = waited_for([Checkup(name="it", declared="it", where="here", probe=away)], 1.0, said.append)
    assert (found.state, found.seen) == ("failed", "is away")
    assert said == ["waiting up to 1 s for it"]


def test_neither_ray_nor_torch_is_loaded() -> None:
    """It answers at once."""
    code = f"import sys; from trainers.doctor import main; main([{str(SHOP)!r}]); print([*sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.rpartition("[")[2]
    assert "'ray'" not in modules
    assert "'torch'" not in modules


@pytest.mark.slow
def test_a_real_postgresql(empty_postgres: str) -> None:
    """Let in; a database that is not there, and one that nobody runs."""
    assert look_at_postgres(empty_postgres).state == "ok"
    with pytest.raises(ServiceUnavailable, match="does not exist"):
        look_at_postgres(empty_postgres.replace("/postgres", "/nowhere"))
    with pytest.raises(ServiceUnavailable, match="refused"):
        look_at_postgres("postgresql://tests@127.0.0.1:9/postgres")
