"""The project keeps its own rules: light imports, packages that ship their data, versions that are pinned."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import WaitUntil

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = ("assembly", "envs", "policies", "rewards", "runtime", "serving", "telemetry", "trainers")
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("runtime", "envs", "rewards", "telemetry", "assembly")
    for path in (ROOT / package).rglob("*.py")
    if path.name != "__main__.py"
)
SNIPPETS = re.findall(r"^```python\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.DOTALL | re.MULTILINE)
WITH_ROOT = {**os.environ, "PYTHONPATH": str(ROOT)}
HEAVY = {"ray", "torch", "transformers", "sklearn"}
"""What takes a second or more to import."""


def imported_by(*modules: str) -> set[str]:
    """The top-level names that a fresh Python has in memory after importing the modules."""
    lines = [*(f"import {m}" for m in modules), "import sys", "print(*{m.partition('.')[0] for m in sys.modules})"]
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


def pinned() -> dict[str, str]:
    """Name (normalized) to version, for every line of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = (line.split("==") for line in lines if not line.startswith("#"))
    return {normal(name): version for name, version in pairs}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required() -> list[str]:
    """Every requirement that pyproject.toml names, the extras' too."""
    project = PYPROJECT["project"]
    return [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]


def test_what_a_team_is_imports_neither_ray_nor_torch() -> None:
    """A refused experiment file is answered in under a second: nothing on the way there imports a heavy library."""
    assert imported_by("runtime", "envs", "rewards", "telemetry", "assembly") & HEAVY == set()


def test_every_module_below_the_trainers_imports_without_ray_and_torch() -> None:
    """They are imported where they are used, inside functions, in every module that a refusal may pass through."""
    assert imported_by(*MODULES) & {"ray", "torch"} == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_one_that_pyproject_names(package: str) -> None:
    """What is imported here is what an installation holds."""
    include = PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    assert (ROOT / package / "__init__.py").is_file()
    assert {package, f"{package}.*"} <= set(include)
    assert package in PYPROJECT["tool"]["importlinter"]["root_packages"]
    assert package in PYPROJECT["tool"]["pyright"]["include"]


def test_no_top_level_package_is_forgotten() -> None:
    """A new package is held to the layers, to the types and to the rest from its first day."""
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert found - {"tests", "bench"} == set(PACKAGES)


def test_every_requirement_has_one_exact_version() -> None:
    """An installation a year from now takes the versions that the tests ran with."""
    names = {normal(re.split(r"[\[<>=;\s]", requirement, maxsplit=1)[0]) for requirement in required()}
    assert names - {"repertory"} <= set(pinned())


def test_a_pinned_version_says_nothing_about_where_it_came_from() -> None:
    """Exact public versions only: no local builds, no paths, no addresses."""
    assert all(re.fullmatch(r"([0-9]+!)?[0-9][0-9a-z.]*", version) for version in pinned().values())


def test_help_names_every_target() -> None:
    """``make`` alone says what can be made."""
    said = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert {"run", "test", "test-slow", "bench", "lint", "help", "clean"} <= set(targets)
    assert [target for target in targets if f"make {target} " not in said] == []


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_for_contributors_runs(snippet: str, tmp_path: Path) -> None:
    """What CONTRIBUTING shows works as it stands there."""
    file = tmp_path / "snippet.py"
    file.write_text(snippet)
    ran = subprocess.run(
        [sys.executable, "-W", "error", file], cwd=ROOT, env=WITH_ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_waiting_names_what_did_not_come(wait_until: WaitUntil) -> None:
    """A test that waits in vain says for what."""
    seen = iter([False, False, True])
    wait_until(lambda: next(seen), "the third look")
    with pytest.raises(pytest.fail.Exception, match="waited 0 s for Godot"):
        wait_until(lambda: False, "Godot", within_s=0)


def test_the_local_ray_runs_a_task(ray_local: None) -> None:
    """Tests that need Ray get a real one."""
    import ray

    assert ray.get(ray.remote(lambda: 2 + 2).remote()) == 4
