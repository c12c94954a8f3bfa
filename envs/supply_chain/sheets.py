"""What each tool looks into: how the rows that amount to a finding are written, and the SQL that reads them.

Everything beside the finding (numbers, ids, dates, other goods' rows) is drawn from the case's seed alone, so that an
answer tells nothing but its finding.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envs.supply_chain.bulletins import CLEAR, CONGESTED, VARIANTS, full_text, of_port, of_town
from envs.supply_chain.cases import SITES
from envs.supply_chain.world_file import ToolEntry, words
from runtime.tools import canonical

Rows = list[Any]
"""The values of a multi-row INSERT, one row after the other."""


class Dice:
    """Small draws out of one 64-bit number."""

    __slots__ = ("_bits",)

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        self._bits, found = divmod(self._bits, high - low + 1)
        return low + found


@dataclass(frozen=True, slots=True)
class Desk:
    """Whose records are wanted: the case's number in the database, and what the case shows."""

    case: int
    visible: Mapping[str, Any]

    @property
    def sku(self) -> str:
        """The article."""
        return self.visible["sku"]

    @property
    def site(self) -> int:
        """The site's place in the list."""
        return SITES.index(self.visible["site"])


@dataclass(frozen=True, slots=True)
class Sheet:
    """One tool's records."""

    insert: str
    select: str
    """With two parameters: what is looked for, and the case."""
    columns: tuple[str, ...]
    """The answer's fields, in the order of the query's columns."""
    rows: Callable[[Desk, str, Dice], Rows]
    """The rows that amount to a finding."""
    subject: Callable[[Desk], str]
    """What is looked for, unless the caller says otherwise."""
    signs: Mapping[str, str]
    """By finding: the words that give it away, the first that occur in the answer."""
    search: str = ""
    """A full-text search for what is looked for, where there is one; it is run before the query, once."""


def _insert(table: str, columns: int, rows: int) -> str:
    return f"INSERT INTO {table} VALUES " + ", ".join([f"({', '.join('?' * columns)})"] * rows)  # noqa: S608


def _sku(desk: Desk) -> str:
    return desk.sku


def _other(dice: Dice) -> str:
    return f"ALT-{dice.between(1000, 9999)}"


def _orders(desk: Desk, finding: str, dice: Dice) -> Rows:
    usual, week = dice.between(80, 240), dice.between(10, 48)
    rows: Rows = []
    for sku, at in ((desk.sku, week), (desk.sku, week + 1), (_other(dice), week)):
        low, high = (160, 210) if finding == "order_surge" else (92, 108)
        units = usual * dice.between(low, high) // 100
        invoiced = units * dice.between(50, 80) // 100 if finding == "orders_disagree" else units
        rows += (desk.case, sku, f"week {at}", units, invoiced, usual)
    return rows


def _inventory(desk: Desk, finding: str, dice: Dice) -> Rows:
    rows: Rows = []
    for sku in (desk.sku, _other(dice)):
        booked = dice.between(200, 600)
        counted = booked * dice.between(40, 70) // 100 if finding == "count_short" else booked
        usable = booked * dice.between(5, 30) // 100 if finding == "stock_blocked_or_wrong" else counted
        rows += (desk.case, sku, f"bin {dice.between(10, 99)}", booked, counted, usable)
    return rows


def _shipments(desk: Desk, finding: str, dice: Dice) -> Rows:
    rows: Rows = []
    for sku in (desk.sku, _other(dice)):
        port = dice.between(5, 12) if finding == "waiting_at_port" else 0
        silent = dice.between(5, 12) if finding == "stalled_in_transit" else 0
        sailed = 0 if finding == "not_departed" else 1
        rows += (desk.case, sku, f"S-{dice.between(10000, 99999)}", sailed, port, silent)
    return rows


def _suppliers(desk: Desk, finding: str, dice: Dice) -> Rows:
    supplier, late = f"V-{dice.between(10, 99)}", finding == "supplier_late"
    first = dice.between(1000, 9000)
    rows: Rows = []
    for place in range(4):
        days = dice.between(4, 15) if late and place else dice.between(0, 2)
        rows += (desk.case, desk.sku, f"D-{first + place}", supplier, days)
    return rows


def _declarations(desk: Desk, finding: str, dice: Dice) -> Rows:
    rows: Rows = []
    for sku in (desk.sku, _other(dice)):
        filed = dice.between(100, 300)
        released = None if finding == "held" else filed + dice.between(1, 4)
        rows += (desk.case, sku, f"E-{dice.between(10000, 99999)}", filed, released)
    return rows


def _lots(desk: Desk, finding: str, dice: Dice) -> Rows:
    rows: Rows = []
    for sku in (desk.sku, _other(dice)):
        defects = dice.between(6, 15) if finding == "lot_blocked" else dice.between(0, 3)
        rows += (desk.case, sku, f"L-{dice.between(1000, 9999)}", defects, 4)
    return rows


def _carriers(desk: Desk, finding: str, dice: Dice) -> Rows:
    rows: Rows = []
    for sku in (desk.sku, _other(dice)):
        planned = dice.between(10, 30)
        driving = 0 if finding == "carrier_stopped" else planned - dice.between(0, 2)
        rows += (desk.case, sku, f"C-{dice.between(10, 99)}", planned, driving)
    return rows


def _wire(desk: Desk, finding: str, dice: Dice) -> Rows:
    """Two bulletins on the site's port among others: news of the town, and of ports that are in some state or other."""
    site, variant = desk.site, dice.between(0, VARIANTS - 1)
    bulletins = [of_port(site, finding, variant), of_port(site, finding, (variant + 1) % VARIANTS), of_town(site)]
    step = dice.between(1, len(SITES) - 2)
    bulletins += (
        of_port((site + step + i) % len(SITES), (CLEAR, CONGESTED)[dice.between(0, 1)], dice.between(0, VARIANTS - 1))
        for i in (0, 1)
    )
    return [v for b in bulletins for v in (desk.case, b, f"day {dice.between(100, 365)}")]


def _port(desk: Desk) -> str:
    return full_text(f"{desk.visible['site']} port")


SHEETS: Mapping[str, Sheet] = {
    "order_history": Sheet(
        insert=_insert("orders", 6, 3),
        select="""
            SELECT week, units, CASE WHEN units * 10 > usual * 14 THEN 'well above usual' ELSE 'as usual' END,
                CASE WHEN units = invoiced THEN 'agrees with invoices' ELSE 'disagrees with invoices' END
            FROM orders WHERE sku = ? AND case_id = ? ORDER BY week""",
        columns=("week", "units", "demand", "record"),
        rows=_orders,
        subject=_sku,
        signs={
            "order_surge": "well above usual",
            "orders_disagree": "disagrees with invoices",
            "normal_orders": "as usual",
        },
    ),
    "inventory_count": Sheet(
        insert=_insert("inventory", 6, 2),
        select="""
            SELECT bin, counted, CASE WHEN counted < booked THEN 'short of the books' ELSE 'matches the books' END,
                CASE WHEN usable < counted THEN 'frozen or misplaced' ELSE 'usable' END
            FROM inventory WHERE sku = ? AND case_id = ?""",
        columns=("bin", "counted", "count", "stock"),
        rows=_inventory,
        subject=_sku,
        signs={
            "count_short": "short of the books",
            "stock_blocked_or_wrong": "frozen or misplaced",
            "count_matches": "matches the books",
        },
    ),
    "shipment_tracking": Sheet(
        insert=_insert("shipments", 6, 2),
        select="""
            SELECT shipment, CASE WHEN NOT sailed THEN 'not departed' WHEN port_days > 3 THEN 'waiting at port'
                WHEN silent_days > 3 THEN 'stalled in transit' ELSE 'on plan' END
            FROM shipments WHERE sku = ? AND case_id = ?""",
        columns=("shipment", "position"),
        rows=_shipments,
        subject=_sku,
        signs={
            "not_departed": "not departed",
            "waiting_at_port": "waiting at port",
            "stalled_in_transit": "stalled in transit",
            "on_plan": "on plan",
        },
    ),
    "supplier_scorecard": Sheet(
        insert=_insert("suppliers", 5, 4),
        select="""
            SELECT supplier, COUNT(*), SUM(days_late > 3),
                CASE WHEN AVG(days_late > 3) > 0.5 THEN 'mostly late' ELSE 'punctual' END
            FROM suppliers WHERE sku = ? AND case_id = ? GROUP BY supplier""",
        columns=("supplier", "deliveries", "late", "rating"),
        rows=_suppliers,
        subject=_sku,
        signs={"supplier_late": "mostly late", "supplier_fine": "punctual"},
    ),
    "customs_status": Sheet(
        insert=_insert("declarations", 5, 2),
        select="""
            SELECT entry, filed_day, CASE WHEN released_day IS NULL THEN 'held by customs' ELSE 'cleared' END
            FROM declarations WHERE sku = ? AND case_id = ?""",
        columns=("entry", "filed_day", "status"),
        rows=_declarations,
        subject=_sku,
        signs={"held": "held by customs", "cleared": "cleared"},
    ),
    "port_bulletin": Sheet(
        insert=_insert("wire", 3, 5),
        select="""
            SELECT published, headline, body
            FROM wire CROSS JOIN hits USING (bulletin) CROSS JOIN bulletins USING (bulletin)
            WHERE query = ? AND case_id = ? ORDER BY score, bulletin LIMIT 2""",
        search="""
            INSERT INTO hits SELECT ?, rowid, bm25(bulletin_index) FROM bulletin_index
            WHERE bulletin_index MATCH ?""",
        columns=("published", "headline", "text"),
        rows=_wire,
        subject=_port,
        signs={CONGESTED: "ships queue for days", CLEAR: "vessels are handled on arrival"},
    ),
    "quality_report": Sheet(
        insert=_insert("lots", 5, 2),
        select="""
            SELECT lot, defects, CASE WHEN defects > allowed THEN 'blocked, too many defects' ELSE 'passed' END
            FROM lots WHERE sku = ? AND case_id = ?""",
        columns=("lot", "defects", "inspection"),
        rows=_lots,
        subject=_sku,
        signs={"lot_blocked": "blocked, too many defects", "lot_passed": "passed"},
    ),
    "carrier_call": Sheet(
        insert=_insert("carriers", 5, 2),
        select="""
            SELECT carrier, driving, CASE WHEN driving * 2 < planned THEN 'service stopped' ELSE 'running' END
            FROM carriers WHERE sku = ? AND case_id = ?""",
        columns=("carrier", "trucks", "service"),
        rows=_carriers,
        subject=_sku,
        signs={"carrier_stopped": "service stopped", "carrier_running": "running"},
    ),
}
"""By tool, for the tools whose records have a form of their own."""


def sheet_for(tool: str, entry: ToolEntry) -> Sheet:
    """The tool's own records if it finds what they can say, else written reports that spell the finding out."""
    own = SHEETS.get(tool)
    return own if own is not None and set(entry.findings) <= set(own.signs) else _reports(tool, entry.findings)


def _reports(tool: str, findings: Sequence[str]) -> Sheet:
    def rows(desk: Desk, finding: str, dice: Dice) -> Rows:
        other = findings[dice.between(0, len(findings) - 1)]
        mine, theirs = f"R-{dice.between(1000, 4999)}", f"R-{dice.between(5000, 9999)}"
        return [desk.case, tool, mine, words(finding), desk.case, f"{tool} elsewhere", theirs, words(other)]

    return Sheet(
        insert=_insert("reports", 4, 2),
        select="SELECT report, says FROM reports WHERE subject = ? AND case_id = ?",
        columns=("report", "says"),
        rows=rows,
        subject=lambda _: tool,
        signs={f: f'"says": {canonical(words(f))}' for f in findings},
    )
