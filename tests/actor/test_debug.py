"""Single steps at a real terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.debug import NoTerminal, stop_before

PROGRAM = """
from runtime.debug import stop_before
from tests.toolbox.desk import answered, rate_desk

at_desk = rate_desk()
before = stop_before("clerk")
for _ in range(2):
    before(at_desk, "other")
    before(at_desk, "clerk")
    print("decided", answered(at_desk, "rate").value, flush=True)
"""


def test_a_stop_before_each_decision() -> None:
    """Before each decision of the role its view is shown; at the prompt one can look at everything, and go on."""
    ours, theirs = pty.openpty()
    root = Path(__file__).parents[2]
    asked = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=root
    )
    os.close(theirs)
    os.write(ours, b"p len(calls), seen.turn\nc\np len(session.records)\nc\n")
    out = asked.communicate(timeout=60)[0].decode()
    os.close(ours)
    assert asked.returncode == 0, out
    assert out.count("--- clerk, decision") == 2
    assert "(2, 0)" in out
    assert "decided 2.0" in out
    assert "decided 3.0" in out
    assert out.index("--- clerk, decision 0") < out.index("decided 2.0") < out.index("--- clerk, decision 1")


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal it is refused at the start, where it would otherwise hang at the first decision."""
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(NoTerminal, match="--debug clerk"):
            stop_before("clerk")
