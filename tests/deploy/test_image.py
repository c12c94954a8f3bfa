"""The image holds what the commands need: it is built here as far as that goes without an engine."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
LINES = re.sub(r"\\\n", " ", DOCKERFILE).splitlines()
"""With continued lines joined."""
COMMANDS = (
    "assembly.check",
    "trainers.run",
    "trainers.doctor",
    "trainers.new",
    "rewards.audit",
    "envs.check",
    "runtime.run",
    "runtime.bus",
    "runtime.embedded",
    "runtime.proxy",
    "runtime.recorded",
    "serving.regressions",
    "serving.replay",
    "serving.run",
    "serving.versions",
    "telemetry.report",
    "telemetry.trace",
    "telemetry.traces",
)
OF_THE_PROJECT = {
    "assembly.reference",
    "bench",
    "bench.capacity",
    "telemetry.dashboards",
    "telemetry.metrics.reference",
}
"""Commands of who works on the project itself."""
ASK = """
import importlib.util, subprocess, sys
for module in sys.argv[1:]:
    print(module, importlib.util.find_spec(module).origin)
"""


def copied() -> list[str]:
    """What the Dockerfile takes from the checkout."""
    lines = [line.split()[1:-1] for line in LINES if line.startswith("COPY") and "--from" not in line]
    return [source for sources in lines for source in sources]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as the image has it: a wheel, built of what the Dockerfile copies and of nothing else."""
    source, wheels = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheels")
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheels), "."]
    wheels_only = {**os.environ, "PIP_ONLY_BINARY": ":all:"}
    built = subprocess.run(pip, cwd=source, env=wheels_only, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = wheels.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(wheels / "site")
    return wheels / "site"


def python(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python that finds the project in the wheel, run where no checkout is near."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=installed, env=environment, capture_output=True, text=True, check=False)


def test_everything_that_is_copied_is_there_and_let_through() -> None:
    """A file that was renamed, or that .dockerignore holds back, is noticed before anybody builds."""
    let_through = set(re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert [name for name in copied() if not (ROOT / name).exists()] == []
    assert set(copied()) == {name for name in let_through if not name.startswith("**")}


def test_every_installation_is_held_by_the_constraints() -> None:
    """No version in the image is one that the tests did not run with; nothing is compiled there."""
    installs = [asked for line in LINES for asked in re.findall(r"pip --python \S+ install ([^&]*)", line)]
    assert len(installs) == 4
    assert all("-c constraints.txt" in line or line.strip().endswith(" .") for line in installs)
    assert "PIP_ONLY_BINARY=:all:" in DOCKERFILE


def test_the_last_stage_has_no_tools_and_no_root() -> None:
    """Whoever gets in finds neither pip nor a compiler, and is nobody."""
    last = DOCKERFILE.split("AS image", 1)[1]
    assert re.findall(r"^USER (.*)$", last, re.MULTILINE) == ["10001:10001"]
    assert not re.search(r"apt-get|pip install|gcc|build-essential", last)
    assert "HEALTHCHECK" in last


def test_no_host_of_an_index_or_registry_is_written_down() -> None:
    """Where packages and images come from is the matter of whoever builds."""
    assert not re.search(r"https?://(?!127\.0\.0\.1)", DOCKERFILE)
    assert re.search(r"^ARG TORCH_INDEX=$", DOCKERFILE, re.MULTILINE)


def test_hadolint_has_nothing_to_say() -> None:
    """The Dockerfile keeps the usual rules."""
    linter = Path(sys.executable).with_name("hadolint")
    linted = subprocess.run([linter, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_commands_of_the_image_are_found_in_its_wheel(installed: Path) -> None:
    """What follows tries the wheel, and not the checkout."""
    asked = python(installed, "-c", ASK, *COMMANDS)
    assert asked.returncode == 0, asked.stderr
    assert [line for line in asked.stdout.splitlines() if str(installed) not in line] == []


def test_every_command_that_the_documentation_names_is_tried() -> None:
    """One that a page names anew is noticed."""
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    named = {m for page in pages for m in re.findall(r"python -m ([a-z]+(?:\.[a-z]+)*)", page.read_text())}
    assert named - OF_THE_PROJECT <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_image_answers(command: str, installed: Path) -> None:
    """Each says how it is used, installed from the wheel alone."""
    told = python(installed, "-m", command, "--help")
    assert told.returncode == 0, told.stderr
    assert "usage:" in told.stdout


def test_the_wheel_has_the_data_that_modules_read(installed: Path) -> None:
    """Pages, scripts and data files of the packages are installed with them."""
    packages = [ROOT / name for name in copied() if (ROOT / name / "__init__.py").is_file()]
    wanted = {"*.json", "*.jsonl", "*.html", "*.css", "*.js", "*.sql", "*.yaml"}
    data = [path.relative_to(ROOT) for package in packages for kind in wanted for path in package.rglob(kind)]
    assert data
    assert [str(path) for path in data if not (installed / path).is_file()] == []
