"""Measured rows on disk: one JSON file, in which a row replaces what was measured of it before."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.outcome import Outcome


def read(path: Path) -> dict[str, Any]:
    """Rows by name; empty where there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def keep(path: Path, row: str, entry: Mapping[str, Any]) -> None:
    """Put a row into the file."""
    rows = {**read(path), row: entry}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    unfinished.rename(path)


def entry(outcome: Outcome, about: Mapping[str, Any]) -> dict[str, Any]:
    """A row's outcome with when, where and how it was measured."""
    return {**about, "claims": [c.as_json() for c in outcome.claims], "figures": rounded(outcome.figures)}


def rounded(value: Any) -> Any:
    """Figures of six digits: more say nothing."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return value
