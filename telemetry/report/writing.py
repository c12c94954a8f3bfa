"""Pages as files: what a run's page and a comparison hold, in their order."""

from collections.abc import Sequence
from pathlib import Path

from telemetry.durable import replace_file
from telemetry.report import comparing, curves, sections
from telemetry.report.page import Section, page
from telemetry.report.reading import Account, account_of
from telemetry.report.timeline import timeline

REPORT_FILE = "report.html"


def write_report(run_dir: Path) -> Path:
    """Write a run's report.html and return its path.

    Raises:
        RecordLost: the directory is not a run's, or cannot be written to.
    """
    return written(run_dir / REPORT_FILE, run_page(account_of(run_dir)))


def write_comparison(run_dirs: Sequence[Path], path: Path) -> Path:
    """Write one page that sets runs side by side, and return its path. Raises RecordLost as ``write_report`` does."""
    return written(path, comparison_page([account_of(directory) for directory in run_dirs]))


def written(path: Path, text: str) -> Path:
    """Write a page and return its path. Raises RecordLost where that cannot be done."""
    replace_file(path, text)
    return path


def run_page(account: Account) -> str:
    """A run's page. What cannot be read is on it in words."""
    episodes = timeline(account)
    parts = [
        sections.result(account),
        curves.learning(account.run),
        curves.rewards(account.run),
        curves.policies(account.run),
        sections.decisions(episodes),
        sections.audit(account.audit),
        sections.gates(account.gates),
        sections.settings(account),
    ]
    return page(account.run.name, sections.headline(account), [p for p in parts if p is not None], episodes)


def comparison_page(accounts: Sequence[Account]) -> str:
    """A page with the runs' results, curves, settings and audits side by side."""
    named = comparing.named(accounts)
    parts: list[Section | None] = [
        comparing.results(named),
        comparing.learning(named),
        comparing.figures(named),
        comparing.settings(named),
        comparing.checks(named),
        comparing.gaps(named),
    ]
    return page(comparing.title(named), comparing.headline(named), [p for p in parts if p is not None])
