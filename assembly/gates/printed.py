"""The gates for a terminal: every figure beside its threshold."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assembly.gates.measured import Gates, Measure


def print_gates(gates: Gates, console: Console) -> None:
    """Print what each gate measured."""
    table = Table("gate", "", "measured", "wanted", "", box=None, pad_edge=False)
    for gate in gates.tried:
        if gate.not_applicable:
            table.add_row(gate.name, "", "not applicable", "", Text(gate.not_applicable, "dim"))
        for measure in gate.measures:
            mark = Text("ok", "green") if measure.ok else Text("FAILED", "bold red")
            line = (measure.what, _value(measure), measure.wanted, Text(measure.note, "dim" if measure.ok else "red"))
            table.add_row(Text.assemble(gate.name, " ", mark), *line)
    console.print(table)
    said = "open" if gates.ok else "closed"
    console.print(Text(f"gates: {said} ({gates.seconds:.1f} s)", "bold green" if gates.ok else "bold red"))


def _value(measure: Measure) -> str:
    if measure.value is None:
        return "yes" if measure.ok else "no"
    return f"{measure.value:.4g} {measure.unit}".strip()
