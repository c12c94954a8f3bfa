"""Curves of several groups of runs in one picture."""

from pathlib import Path

import pytest

from telemetry.picture import learning_curves_png
from tests.telemetry.samples import write_run


def test_groups_of_runs_in_one_picture(tmp_path: Path) -> None:
    """A group that ended early is drawn as far as it went; more groups than colours are refused."""
    long, short = (write_run(tmp_path / str(k), iterations=k) for k in (10, 7))
    path = learning_curves_png({"whole": [long], "stopped": [short]}, tmp_path / "curves.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.read_bytes() != learning_curves_png({"whole": [long]}, tmp_path / "one.png").read_bytes()
    with pytest.raises(ValueError, match="5 groups of runs, and 4 colours"):
        learning_curves_png({str(k): [long] for k in range(5)}, path)
