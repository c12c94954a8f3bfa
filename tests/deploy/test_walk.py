"""The README's five-minute walk: each command, in its order and in one shell, prints what the page shows."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import WaitUntil
from tests.deploy.test_tutorial import ROOT, Shell, free_port

README = (ROOT / "README.md").read_text()
OWN, WALK = (README.split(f"## {title}", 1)[1].split("\n## ", 1)[0] for title in ("Bring your own team", "Serve it"))
FILES = {
    "greeter.py": re.findall(r"```python\n(.*?)```", OWN, re.DOTALL)[0],
    **dict(re.findall(r"`([\w.]+)`[^`]*?:\n\n```(?:python|yaml)\n(.*?)```", WALK, re.DOTALL)),
}
SERVER = "python -m serving.run serving.yaml &"
STEP_S = 600.0
"""How long a command may take (s), on a machine that is busy with something else."""


def steps() -> list[tuple[str, list[str]]]:
    """Each command, and the lines that are shown of what it prints."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```\n(\$ .*?)```", WALK, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def pattern(shown: str) -> str:
    """A line as it is shown: numbers may be others, and so may the language and the space between words."""
    words = re.split(r"\s+", shown.strip().replace("french", "LANGUAGE"))
    told = r"\s+".join(re.sub(r"(?<![\w.])\d+(\\\.\d+)?(?![\w])", r"[\\d.e+-]+", re.escape(word)) for word in words)
    return told.replace("LANGUAGE", "(french|german)")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell in a folder with the page's files; the server's ports are free ones."""
    folder, ports = tmp_path / "walk", {"8000": str(free_port()), "9464": str(free_port())}
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text.replace("8000", ports["8000"]))
    with (folder / "serving.yaml").open("a") as file:
        file.write(f"telemetry: {{port: {ports['9464']}}}\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    opened = Shell(folder, {**os.environ, "PATH": path, "PORT": ports["8000"], "METRICS": ports["9464"]})
    yield opened
    opened.close()


def test_the_page_has_what_is_run() -> None:
    """The look for files and commands finds them all."""
    assert list(FILES) == ["greeter.py", "talker.yaml", "serving.yaml", "talk.py", "play.py"]
    commands = [command for command, _ in steps()]
    assert (commands[0], commands[-1]) == ("source .venv/bin/activate", "python -m serving.versions history greeter")
    assert SERVER in commands
    assert re.fullmatch(pattern("v1: 287 sessions, 46% understood"), "v1: 3 sessions, 7% understood")
    assert not re.fullmatch(pattern("v1: 287 sessions"), "v2: 287 sessions")


@pytest.mark.slow
@pytest.mark.timeout(1700)
def test_train_serve_chat_train_again_and_roll_out(shell: Shell, wait_until: WaitUntil) -> None:
    """What each command prints is what is shown of it, but for its figures; the better version earns more."""
    said = ""
    for command, shown in steps()[1:]:
        typed = command.replace("127.0.0.1:8000", "127.0.0.1:$PORT").replace("127.0.0.1:9464", "127.0.0.1:$METRICS")
        said = shell.type(typed, wait_until, within_s=STEP_S)
        for line in shown:
            assert re.search(pattern(line), said), f"{command}\nshown: {line}\n{said}"
        if command == SERVER:
            wait_until(lambda: "greeter v1: ready" in shell.said(), "v1 to be ready", STEP_S)
            shell.type("curl -sf --retry 20 --retry-all-errors http://127.0.0.1:$PORT/readyz", wait_until, STEP_S)
        if "session_reward" in command:
            first, second = (
                float(x) for x in re.findall(r'^session_reward.*version="v[12]"} (\S+)$', said, re.MULTILINE)
            )
            assert second > first + 0.2
    assert re.search("v1 +ready +current", shell.said())
