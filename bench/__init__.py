"""What is measured: speed and learning, each row against its target. ``python -m bench --list`` names the rows."""

import os


def quiet() -> None:
    """One thread, and none of Ray's start-up talk, in this process and those that it starts."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("PYTHONWARNINGS", "ignore::DeprecationWarning")
