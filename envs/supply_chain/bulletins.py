"""The news archive that port_bulletin searches, and how a search is put to SQLite's full-text index."""

import re

from envs.supply_chain.cases import SITES

CLEAR, CONGESTED = "port_clear", "port_congested"

_NEWS = {
    CLEAR: (
        ("Port of {port} clear", "Berths are free at the port of {port} and vessels are handled on arrival"),
        ("Port of {port} clear this week", "At the port of {port} vessels are handled on arrival, berths are free"),
        ("All clear at the port of {port}", "Berths at the port of {port} are free, vessels are handled on arrival"),
    ),
    CONGESTED: (
        ("Port of {port} congested", "Ships queue for days off the port of {port} and terminals are congested"),
        ("Port of {port} congested this week", "Terminals are congested at the port of {port}, ships queue for days"),
        ("Congested terminals at the port of {port}", "Off the port of {port} ships queue for days"),
    ),
}
_TOWN = (
    "Street festival in {port}",
    "Several streets in the old town will be shut on Sunday, the council of {port} said today",
)

VARIANTS = 3
"""Bulletins that say the same of a port."""
_EACH = 2 * VARIANTS + 1


def _archive() -> list[tuple[int, str, str]]:
    rows: list[tuple[int, str, str]] = []
    for port in SITES:
        for headline, body in (*_NEWS[CLEAR], *_NEWS[CONGESTED], _TOWN):
            rows.append((len(rows), headline.format(port=port), body.format(port=port)))
    return rows


ARCHIVE = tuple(_archive())
"""(number, headline, body) of every bulletin."""


def of_port(site: int, finding: str, variant: int) -> int:
    """The number of a bulletin that says so of the port of that site."""
    return site * _EACH + (VARIANTS if finding == CONGESTED else 0) + variant


def of_town(site: int) -> int:
    """The number of a bulletin about the town that says nothing of its port."""
    return site * _EACH + 2 * VARIANTS


def full_text(query: str) -> str:
    """The words of the query, any of which may occur, as SQLite's FTS5 wants them."""
    return " OR ".join(f'"{w}"' for w in re.findall(r"\w+", query)) or '""'
