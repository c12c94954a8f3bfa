"""The documentation's site is built without a warning, and names only commands that there are."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TROUBLES = sorted((ROOT / "docs" / "troubleshooting").glob("*.md"))
MODULES = sorted({m for page in PAGES for m in re.findall(r"python -m ([a-z][\w.]+)", page.read_text())})
"""Modules of ours that a page tells to run."""


def test_the_site_is_built_strictly(tmp_path: Path) -> None:
    """No page is missing from where it is named, no link leads nowhere."""
    asked = [Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--site-dir", tmp_path / "site"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(asked, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = {page.relative_to(tmp_path / "site").as_posix() for page in (tmp_path / "site").rglob("index.html")}
    assert "fonts.googleapis" not in (tmp_path / "site" / "index.html").read_text()
    assert {"index.html", "tutorial/index.html", "troubleshooting/pending-grows/index.html"} <= pages


@pytest.mark.parametrize("module", MODULES)
def test_a_command_that_a_page_names_is_there(module: str) -> None:
    """It is a module that can be run, found where its name says."""
    file = ROOT / Path(*module.split("."))
    assert file.with_suffix(".py").is_file() or (file / "__main__.py").is_file()


@pytest.mark.parametrize("page", TROUBLES, ids=lambda page: page.stem)
def test_a_page_of_trouble_ends_in_a_command(page: Path) -> None:
    """Its last lines are a command of ours that shows what is wrong."""
    last = re.findall(r"```\n(.*?)```\s*\Z", page.read_text(), re.DOTALL)
    assert last
    assert all(line.startswith("python -m ") for line in last[0].splitlines())
