"""The page on models and tools does what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "models-and-tools.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("place", range(len(BLOCKS)))
def test_its_examples_run(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example runs as it stands, and what it asserts holds."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(BLOCKS[place], f"{PAGE.name}, example {place + 1}", "exec"), names)  # noqa: S102 - our own page
    closing = names.get("shop") or names.get("stock")
    if closing is not None:
        closing.close()
