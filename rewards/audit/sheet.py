"""The sheet of decisions: written for a spreadsheet, filled in by people, read back with every error by its row."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rewards.audit.decisions import Judged, decisions, sample
from rewards.audit.material import Material

COLUMNS = ("decision", "agent", "saw", "did", "label")
ROWS = 100
"""Decisions on a sheet."""
WORDS = {"yes": 1.0, "good": 1.0, "right": 1.0, "true": 1.0, "no": 0.0, "bad": 0.0, "wrong": 0.0, "false": 0.0}
"""Words that labels may be, beside numbers of any scale."""
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a cell may not begin with, since a spreadsheet would compute it."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a person says of a decision: the higher, the better."""

    row: int
    """Of the sheet, the header being row 1."""
    decision: str
    value: float


class SheetError(ValueError):
    """A sheet cannot be read: every row that is wrong, and why."""


def write_sheet(material: Material, file: Path) -> int:
    """Write decisions to label, the pay hidden; how many."""
    chosen = sample(decisions(material), ROWS, material.seed)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows(_row(d) for d in chosen)
    file.write_bytes(out.getvalue().encode("utf-8-sig"))  # the mark without which some spreadsheets take it for Latin-1
    return len(chosen)


def _row(decision: Judged) -> list[str]:
    return [_inert(c) for c in (decision.id, decision.agent, decision.saw, decision.did, "")]


def _inert(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULAS) else cell


def read_labels(file: Path) -> list[Label]:
    """The labels that were filled in; rows without one are left out.

    Raises:
        SheetError: there is no such file, a column lacks, or rows have labels that are no numbers, or come twice.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise SheetError(f"{file} cannot be read: {fault}; save the sheet as CSV in UTF-8") from fault
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text)))
    if not rows or not {"decision", "label"} <= {c.strip().lower() for c in rows[0]}:
        raise SheetError(f"{file} row 1: the columns 'decision' and 'label' are not there; keep the sheet's first row")
    head = [c.strip().lower() for c in rows[0]]
    labels, wrong = _labels(rows[1:], head.index("decision"), head.index("label"))
    if wrong:
        raise SheetError(f"{file} has {len(wrong)} rows that cannot be read:\n" + "\n".join(f"  {w}" for w in wrong))
    return labels


def _delimiter(text: str) -> str:
    first = text.partition("\n")[0]
    return max(",;\t", key=first.count)


def _labels(rows: Iterable[Sequence[str]], decision: int, label: int) -> tuple[list[Label], list[str]]:
    found: dict[str, Label] = {}
    wrong: list[str] = []
    for number, row in enumerate(rows, 2):
        if not any(c.strip() for c in row):
            continue
        if len(row) <= max(decision, label):
            wrong.append(f"row {number}: has {len(row)} cells and needs {max(decision, label) + 1}")
            continue
        name, told = row[decision].strip().lstrip("'"), row[label].strip()
        value = _value(told)
        if told and value is None:
            wrong.append(f"row {number}: {told!r} is no number, and none of {', '.join(WORDS)}")
        elif told and name in found:
            wrong.append(f"row {number}: decision {name} was labelled in row {found[name].row} already")
        elif value is not None:
            found[name] = Label(number, name, value)
    return list(found.values()), wrong


def _value(told: str) -> float | None:
    if told.lower() in WORDS:
        return WORDS[told.lower()]
    try:
        value = float(told.replace(",", "."))
    except ValueError:
        return None
    return value if abs(value) < 1e12 else None


def matched(material: Material, labels: Sequence[Label]) -> list[tuple[Label, Judged]]:
    """Labels beside the decisions that they are about. Raises SheetError if this experiment has no such decision."""
    known = {d.id: d for d in decisions(material)}
    strange = [x for x in labels if x.decision not in known]
    if strange:
        rows = "\n".join(f"  row {x.row}: there is no decision {x.decision or '(empty)'}" for x in strange)
        raise SheetError(
            f"{len(strange)} of {len(labels)} labels are about decisions that this experiment does not take "
            f"(was the sheet written for another file, seed or version of the team?):\n{rows}"
        )
    return [(x, known[x.decision]) for x in labels]
