"""The world of one case: its records, which the tools look into, and the remedy that was chosen."""

from collections.abc import Mapping
from itertools import count
from random import Random
from typing import Any

from envs.supply_chain.cases import draw_findings, findings_given
from envs.supply_chain.database import database
from envs.supply_chain.sheets import Desk, Dice, Sheet, sheet_for
from envs.supply_chain.world_file import WorldFile
from runtime.records import Json
from runtime.seams import digest
from runtime.tools import canonical
from runtime.types import Scenario

_CASES = count(1)
"""Numbers the cases of this process in its database; no answer contains one."""


class SupplyWorld:
    """What the tools of one case act on. Rows are written when a tool is first asked."""

    def __init__(self, file: WorldFile, sheets: Mapping[str, Sheet], scenario: Scenario) -> None:
        self._file, self._sheets, self._scenario = file, sheets, scenario
        self._desk = Desk(next(_CASES), scenario.visible)
        self._findings: Mapping[str, str] = scenario.truth.get("findings", {})
        self._filed: dict[str, object] = {}
        self.remedy: str | None = None
        """The remedy chosen; None until then."""

    def ask(self, tool: str, subject: str = "") -> list[dict[str, Any]]:
        """The rows that answer the tool's query, on what the tool is usually asked about or on the subject given."""
        sheet, base = self._sheets[tool], database()
        if self._filed.get(tool) is not base.batch:
            dice = Dice(digest("rows", self._scenario.seed, tool))
            base.write(sheet.insert, sheet.rows(self._desk, self._finding(tool), dice))
            self._filed[tool] = base.batch
        subject = subject or sheet.subject(self._desk)
        if sheet.search:
            base.search(sheet.search, subject)
        rows = base.read(sheet.select, (subject, self._desk.case))
        return [dict(zip(sheet.columns, r, strict=True)) for r in rows]

    def _finding(self, tool: str) -> str:
        """What the tool finds: as the case says, else drawn from the case's seed by the odds its cause gives."""
        found = self._findings.get(tool)
        if found is None:
            chance = Random(digest("findings", self._scenario.seed))
            found = draw_findings(findings_given(self._file, self._scenario.truth["cause"]), chance)[tool]
        return found

    def outcome(self) -> tuple[Mapping[str, Json], bool]:
        """The remedy, and whether none pays more under the true cause."""
        cause = self._scenario.truth["cause"]
        pays = None if self.remedy is None else self._file.payoff[self.remedy][cause]
        return {"remedy": self.remedy}, pays is not None and pays >= self._file.best_payoff(cause)


def sheets_of(file: WorldFile) -> dict[str, Sheet]:
    """Each tool's records."""
    return {name: sheet_for(name, entry) for name, entry in file.tools.items()}


def finding_in(sheet: Sheet, answer: Json) -> str | None:
    """Which finding a tool's answer spells out; None where it spells out none."""
    text = canonical(answer)
    return next((f for f, sign in sheet.signs.items() if sign in text), None)
