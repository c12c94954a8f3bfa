"""The page about the bus shows what works."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SNIPPETS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "bus.md").read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_runs(snippet: str, tmp_path: Path) -> None:
    """As it stands there, without a warning."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", snippet], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_the_bus_is_loaded_only_where_it_is_used() -> None:
    """``import runtime`` takes neither redis nor SQLAlchemy; ``runtime.EventBus`` is there all the same."""
    code = "import sys, runtime; assert not {'redis', 'sqlalchemy'} & {*sys.modules}; runtime.EventBus; runtime.nothing"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr.splitlines()[-1] == "AttributeError: module 'runtime' has no attribute 'nothing'"
