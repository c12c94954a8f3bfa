"""docs/benchmarks.md, written from the rows that were measured."""

from collections.abc import Mapping
from typing import Any

from bench.rows import ROWS

HEAD = """# Benchmarks

Written by `python -m bench --write` from `docs/benchmarks.json`; change neither by hand. `make bench` measures every
usual row again, `python -m bench ROW` one of them, `python -m bench --list` names them. Speed is compared within one
run on one machine: look at the ratios, not at the seconds. A row that is not here has not been measured.

* **speed**: one PPO iteration, sampling and update. *ours* is this project's engine with everything it does in a run;
  *plain* is RLlib's own runner, connectors and learner with 8 environments and its default fragments; *plain in
  pieces* the same with fragments of 25 steps (*wide*: with as many environments as ours); *handwritten* a PPO loop in
  PyTorch without any library (`bench/handwritten.py`). All have the same environment, features, networks, batch,
  minibatch and epochs.
* **bus**: one writer and one reader process, 16 events written and 64 read at once by all, in turns on fresh
  servers. *Store off* also writes the complete log and the contract's fields; *everything on* commits each batch to
  SQLite, synced, on both sides. The hop ends when the handler has the event.
* **looking**: metrics read every second, TensorBoard, metrics file and records of training, traces of a live chain; an
  iteration or a lap of sessions with all of it, and one without, in turns.
* **two_step**, **cartpole**, **waterworld**: the target is the figure of RLlib's own tuned example.
* **tictactoe**: self-play; then the likeliest move, on both sides, against uniformly random play.
* **supply_chain**, **worlds**: score 0 is random play, 1 the exact optimum of the world, on 10,000 held-out cases.
* **standardization**: the same after 80 iterations, 2,000 held-out cases; *as paid* is `standardize: {per: none}`.
"""


def page(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The page. Rows of tiny sizes measured nothing and are left out."""
    measured = {n: rows[n] for n in ROWS if n in rows and not rows[n]["quick"]}
    parts = [HEAD, _table(measured)] if measured else [HEAD, "Nothing has been measured yet.\n"]
    return "\n".join([*parts, *(_where(n, r) for n, r in measured.items())])


def _table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    head = ["| row | what | measured | target | met |", "|---|---|---|---|---|"]
    claims = [(name, claim) for name, row in rows.items() for claim in row["claims"]]
    body = [f"| {n} | {c['what']} | {_value(c)} | {_target(c)} | {_met(c)} |" for n, c in claims]
    return "\n".join([*head, *body]) + "\n"


def _value(claim: Mapping[str, Any]) -> str:
    if claim["measured"] is None:
        return "not reached"
    return f"{_number(claim['measured'])} {claim['unit']}".strip()


def _target(claim: Mapping[str, Any]) -> str:
    if claim["target"] is None:
        return ""
    return f"{'≥' if claim['at_least'] else '≤'} {_number(claim['target'])}"


def _met(claim: Mapping[str, Any]) -> str:
    return {None: "", True: "yes", False: "**no**"}[claim["met"]]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _where(name: str, row: Mapping[str, Any]) -> str:
    at, asked = row["machine"], f", with {', '.join(row['asked'])}" if row["asked"] else ""
    packages = ", ".join(f"{n} {v}" for n, v in at["packages"].items())
    cores = f"{at['cores']} cores ({at['cpu']}), {at['threads']} thread, load {at['load_1min']} at the start"
    took = f"{row['seconds'] / 60:.1f} minutes in all"
    return f"`{name}`: {row['date']}, {cores}, Python {at['python']}, {packages}; {took}{asked}.\n"


def lines(name: str, claims: list[Mapping[str, Any]]) -> str:
    """The claims of a row for a terminal."""
    width = max(len(c["what"]) for c in claims)
    verdict = {None: "", True: "met", False: "NOT MET"}
    told = [f"{name:16} {c['what']:{width}}  {_value(c):>22}  {_target(c):8} {verdict[c['met']]}" for c in claims]
    return "\n".join(line.rstrip() for line in told)
