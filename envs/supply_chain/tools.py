"""The tools as typed functions: what the agents read of them, and the form of their answers."""

from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

from envs.supply_chain.bulletins import full_text
from envs.supply_chain.sheets import SHEETS, Sheet
from envs.supply_chain.world import SupplyWorld
from envs.supply_chain.world_file import RESOLVE, ToolEntry, WorldFile, words
from runtime.records import Json
from runtime.tools import tool
from runtime.types import Tool


class OrderWeek(TypedDict):
    """Orders of one week."""

    week: str
    units: int
    demand: str
    """Beside the usual quantity."""
    record: str
    """Whether order book and invoices say the same."""


class StockLine(TypedDict):
    """One storage place, counted."""

    bin: str
    counted: int
    count: str
    """Beside the books."""
    stock: str
    """Whether it can be used."""


class Shipment(TypedDict):
    """One shipment on its way here."""

    shipment: str
    position: str


class Scorecard(TypedDict):
    """A supplier's latest deliveries."""

    supplier: str
    deliveries: int
    late: int
    rating: str


class Declaration(TypedDict):
    """One customs entry."""

    entry: str
    filed_day: int
    status: str


class Bulletin(TypedDict):
    """One hit of the news search."""

    published: str
    headline: str
    text: str


class Lot(TypedDict):
    """One lot's inspection."""

    lot: str
    defects: int
    inspection: str


class CarrierState(TypedDict):
    """What the carrier says."""

    carrier: str
    trucks: int
    service: str


class Report(TypedDict):
    """One written report."""

    report: str
    says: str


def order_history(world: SupplyWorld) -> list[OrderWeek]:
    """Read the article's orders of the last weeks, beside the usual quantity and the invoices."""
    return world.ask("order_history")  # type: ignore[return-value]


def inventory_count(world: SupplyWorld) -> list[StockLine]:
    """Have the article's stock counted on site and compared with the books."""
    return world.ask("inventory_count")  # type: ignore[return-value]


def shipment_tracking(world: SupplyWorld) -> list[Shipment]:
    """Track the article's shipments on their way to the site."""
    return world.ask("shipment_tracking")  # type: ignore[return-value]


def supplier_scorecard(world: SupplyWorld) -> list[Scorecard]:
    """Read how punctual the article's supplier has been lately."""
    return world.ask("supplier_scorecard")  # type: ignore[return-value]


def customs_status(world: SupplyWorld) -> list[Declaration]:
    """Ask customs how the article's declarations stand."""
    return world.ask("customs_status")  # type: ignore[return-value]


def port_bulletin(world: SupplyWorld, query: str = "") -> list[Bulletin]:
    """Search the news for the words of the query; by default for the site's port."""
    return world.ask("port_bulletin", full_text(query) if query.strip() else "")  # type: ignore[return-value]


def quality_report(world: SupplyWorld) -> list[Lot]:
    """Read the quality inspection of the article's current lot."""
    return world.ask("quality_report")  # type: ignore[return-value]


def carrier_call(world: SupplyWorld) -> list[CarrierState]:
    """Call the article's carrier and ask whether its trucks drive."""
    return world.ask("carrier_call")  # type: ignore[return-value]


_FUNCTIONS: Mapping[str, Callable[..., Json]] = {
    f.__name__: f
    for f in (
        order_history,
        inventory_count,
        shipment_tracking,
        supplier_scorecard,
        customs_status,
        port_bulletin,
        quality_report,
        carrier_call,
    )
}


def tools_of(file: WorldFile, sheets: Mapping[str, Sheet]) -> dict[str, Tool]:
    """Every tool of the world file, and the one that ends the case."""
    found = {name: _tool(name, entry, sheets[name]) for name, entry in file.tools.items()}
    return {**found, RESOLVE: tool(_resolver(file.remedies), name=RESOLVE, ends=True)}


def _tool(name: str, entry: ToolEntry, sheet: Sheet) -> Tool:
    function = _FUNCTIONS[name] if sheet is SHEETS.get(name) else _reporter(name, entry)
    return tool(function, name=name, cost_usd=entry.cost)


def _reporter(name: str, entry: ToolEntry) -> Callable[..., Json]:
    def report(world: SupplyWorld) -> list[Report]:
        return world.ask(name)  # type: ignore[return-value]

    report.__doc__ = f"Read the report on {words(name)}: {', '.join(words(f) for f in entry.findings)}."
    return report


def _resolver(remedies: tuple[str, ...]) -> Callable[..., Json]:
    choice = WithJsonSchema({"enum": list(remedies)})

    def resolve(world: SupplyWorld, remedy: Annotated[str, choice]) -> str:
        """Close the case with a remedy."""
        world.remedy = remedy
        return remedy

    return resolve
