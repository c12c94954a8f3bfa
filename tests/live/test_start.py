"""An agent that starts again loads what it plays with, and no more."""

import subprocess
import sys

NOT_NEEDED = {
    "sklearn", "scipy", "pandas", "matplotlib", "gymnasium", "pettingzoo", "ray.rllib", "transformers", "mcp", "torch"
}  # fmt: skip
"""What training, checking and other kinds of teams need; torch is loaded with the first policy that is a network."""


def test_a_version_plays_without_what_training_needs() -> None:
    """A killed agent's new process imports this much before it can go on: scikit-learn alone took two seconds."""
    asked = "import sys, assembly.stage_live; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=110, check=True)
    loaded = set(done.stdout.split())
    assert "assembly.live" in loaded, "what the check looks at is there"
    assert not loaded & NOT_NEEDED
