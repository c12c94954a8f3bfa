"""Where a version comes from: experiment, code, seed, parent, evaluation, audit, standardizer."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from serving.registry.objects import LINEAGE

EVALUATED = ("score", "eval", "baselines")
"""What is kept of a run's ``result.json``."""
AUDITED = ("ok", "findings", "waived")
"""What is kept of its ``audit.json``."""


def lineage_of(directory: Path, parent: str = "") -> dict[str, Any]:
    """What is known of an export's origin: what it says itself, and what lies beside it in its run directory.

    Args:
        directory: the export, ``RUN_DIR/version``.
        parent: the alias of the version it was trained from; empty: what the export says, or nothing.
    """
    said = _json(directory / LINEAGE)
    run = directory.resolve().parent
    result, audit = _json(run / "result.json"), _json(run / "audit.json")
    statistics = directory / "standardizer.json"
    return {
        **said,
        "commit": said.get("commit"),
        "parent": parent or said.get("parent") or None,
        "evaluation": {k: result[k] for k in EVALUATED if k in result} or None,
        "audit": {k: audit[k] for k in AUDITED if k in audit} or None,
        "plays": _plays(_json(directory / "team.json")),
        "standardizer": sha256(statistics.read_bytes()).hexdigest() if statistics.is_file() else None,
    }


def _plays(about: Mapping[str, Any]) -> str:
    """A hash of what a session's records mean: versions with the same one can take over each other's sessions."""
    told = {k: about.get(k) for k in ("use", "args", "tools", "source")}
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
