"""The commands, as an operator types them: files refused with all that is wrong, versions steered, a server."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from assembly.problems import Refused
from serving.client import Client
from serving.loading import load
from serving.run import main as serve_main
from serving.versions.__main__ import main as versions_main
from tests.conftest import WaitUntil
from tests.serving.conftest import TEAM, UP_S, free_port


def written(folder: Path, text: str) -> Path:
    file = folder / "serving.yaml"
    file.write_text(text)
    return file


def test_everything_wrong_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its line and key; a token that stands in the file itself is not repeated. Exit code 2."""
    file = written(
        tmp_path,
        "teams:\n  supply_chain: {registry: reg, curent: v1, replicas: 0}\n"
        "http:\n  host: 0.0.0.0\n  tokens: {ada: my-secret-token}\n"
        "limits: {turn_s: soon}\nredis: localhost\nroutes: 2\nrollout: {minimum_sessions: 0}\n",
    )
    assert serve_main([str(file)]) == 2
    said = capsys.readouterr().err
    assert re.search(r"serving\.yaml has 7 problems", said), said
    for line, key in (
        (2, r"curent: unknown key; did you mean 'current'"),
        (2, "replicas"),
        (5, r"tokens\.ada: wants env:NAME or file:PATH"),
        (6, "turn_s: wants a number"),
        (7, "redis"),
        (8, "routes: unknown key; did you mean 'routers'"),
        (9, "minimum_sessions"),
    ):
        assert re.search(rf"line {line}\b.*{key}", said), (line, key, said)
    assert "my-secret-token" not in said


def test_the_documentation_shows_the_whole_file(tmp_path: Path) -> None:
    """Every key in docs/serving.md, and its default."""
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    shown = re.search(r"```yaml\n(teams:.*?)```", page, re.DOTALL)
    assert shown
    told = load(written(tmp_path, shown[1]))
    team = told.teams[TEAM]
    assert told == load(written(tmp_path, f"teams: {{{TEAM}: {{registry: registry, current: v1}}}}\n"))
    for section in (told, team, told.http, told.limits, told.telemetry):
        assert section.model_fields_set == set(type(section).model_fields)


def test_rules_between_keys(tmp_path: Path) -> None:
    """No other machine without tokens; nobody steers who has none."""
    file = written(tmp_path, "teams: {t: {registry: reg}}\nhttp: {host: 0.0.0.0, admins: [root]}\n")
    with pytest.raises(Refused) as refused:
        load(file)
    assert [p.key for p in refused.value.problems] == ["http.host", "http.admins.0"]
    good = load(written(tmp_path, "teams: {t: {registry: reg}}\n"))
    assert good.teams["t"].registry == str(tmp_path / "reg")
    assert good.store_at == f"sqlite:///{tmp_path}/served/store.db"
    assert load(file, ["http.host=127.0.0.1", "http.admins=[admin]"]).http.host == "127.0.0.1"


def test_a_missing_service(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Redis that does not answer, a token that is not there: exit code 3, which, and what to do."""
    text = "teams: {t: {registry: reg}}\nredis: redis://127.0.0.1:1/0\n"
    assert serve_main([str(written(tmp_path, text))]) == 3
    assert "redis://127.0.0.1:1/0" in capsys.readouterr().err
    text = "teams: {t: {registry: reg}}\nhttp: {tokens: {admin: env:NO_SUCH_TOKEN}}\n"
    assert serve_main([str(written(tmp_path, text))]) == 3
    assert "env:NO_SUCH_TOKEN" in capsys.readouterr().err


def test_help_is_instant() -> None:
    """Neither Ray nor PyTorch is imported for it."""
    for module in ("serving.run", "serving.versions"):
        code = (
            f"import runpy, sys; sys.argv = ['x', '--help']\ntry: runpy.run_module('{module}', run_name='__main__')\n"
            "except SystemExit: pass\nprint(sorted({'ray', 'torch', 'sqlalchemy', 'fastapi'} & set(sys.modules)))"
        )
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert said.splitlines()[-1] == "[]", module
        assert "usage" in said


def test_versions_by_command(tmp_path: Path, exports: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Registered and listed without a server; what may not be is refused, with exit code 2 and the reason."""
    file = written(tmp_path, f"teams: {{{TEAM}: {{registry: registry}}}}\n")

    def run(*args: str) -> tuple[int, str]:
        code = versions_main([*args, "--file", str(file)])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    code, said = run("deploy", TEAM, str(exports[0]), "--why", "the first", "--by", "ada")
    assert (code, "v1: deploying" in said) == (0, True)
    assert run("canary", TEAM, "v1", "5%") == (2, "v1 is deploying: only a version that is ready gets new sessions\n")
    assert run("canary", TEAM, "v1", "much")[0] == 2
    assert run("promote", TEAM, "v9")[0] == 2
    assert run("list", "shop")[0] == 2
    assert "v1     deploying" in run("list", TEAM)[1]
    told = run("history", TEAM)[1]
    assert re.search(r"v1 +deploy +by ada .*the first", told)
    broken = tmp_path / "broken"
    broken.mkdir()
    assert run("deploy", TEAM, str(broken)) == (2, f"{broken} has no manifest.json\n")
    with pytest.raises(SystemExit) as usage:
        run("canary", TEAM, "v1")
    assert usage.value.code == 2


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.xdist_group("ray")
def test_a_server_that_is_killed_goes_on(tmp_path: Path, exports: tuple[Path, Path], wait_until: WaitUntil) -> None:
    """Started, spoken to, killed with everything it had; started again, the open session goes on where it was."""
    port = free_port()
    text = f"teams: {{{TEAM}: {{registry: registry, current: v1}}}}\nhttp: {{port: {port}}}\nrouters: 1\n"
    file = written(tmp_path, text)
    assert versions_main(["deploy", TEAM, str(exports[0]), "--file", str(file)]) == 0
    first = started(file)
    try:
        token = tmp_path / "served" / "token"
        wait_until(lambda: up(port), "the server to be ready", UP_S)
        assert token.stat().st_mode & 0o077 == 0
        client = Client(f"http://127.0.0.1:{port}", token.read_text(), patience_s=UP_S)
        session = client.open(TEAM, draw={"index": 1})
        assert session.turn("one").turn == 0
    finally:
        kill_all(first)
    second = started(file)
    try:
        wait_until(lambda: up(port), "the server to be ready again", UP_S)
        assert [t.turn for t in session] == [1, 2]
        client.close()
        second.send_signal(signal.SIGTERM)
        out, _ = second.communicate(timeout=60)
        assert second.returncode == 0
        assert "v1: ready" in out
        assert "stopped" in out
        assert token.read_text() not in out
    finally:
        kill_all(second)


def started(file: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "serving.run", str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def kill_all(process: "subprocess.Popen[str]") -> None:
    """The process and everything below it, as a machine that loses its power would."""
    import psutil

    if process.poll() is None:
        below = psutil.Process(process.pid).children(recursive=True)
        for each in [psutil.Process(process.pid), *below]:
            try:
                each.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(below, timeout=20)
    process.communicate(timeout=30)


def up(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False


def test_the_usual_directory_hides_no_package(tmp_path: Path) -> None:
    """A program beside the serving file finds the packages also when the server's directory is there."""
    place = load(written(tmp_path, "teams: {t: {registry: reg}}\n")).place
    place.mkdir()
    (tmp_path / "ask.py").write_text("from serving import Client\nprint(Client.__name__)\n")
    asked = subprocess.run([sys.executable, "ask.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert asked.stdout == "Client\n", asked.stderr
