"""``python -m telemetry.trace CORRELATION_ID [--store URL|--run RUN_DIR]``: a whole chain, found by its one id.

Who did what when: what was seen, what was chosen and how likely the other calls were, what came back, what was paid.
"""

import argparse
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import exp
from pathlib import Path

from runtime.errors import RepertoryError, ServiceUnavailable
from runtime.records import (
    AgentStarted,
    AgentStopped,
    AnyRecord,
    Decided,
    DecisionRecord,
    EpisodeEnded,
    EpisodeOpened,
    Feedback,
    ModelCalled,
    Observed,
    Redelivered,
    Rewarded,
    Sent,
    StateChanged,
    ToolAnswered,
    ToolUndone,
)
from telemetry.durable import RecordLost
from telemetry.episode import call_text, chosen_text, end_text, fault_text, missing_text, short_json, story
from telemetry.records_file import episode_files, read_episode
from telemetry.run_dir import RECORDS

FOUND, FAULT, NOTHING, UNAVAILABLE = 0, 1, 2, 3
"""Exit codes."""
OTHERS = 4
"""Calls shown beside the one that was chosen, the likeliest first."""
RARE = 0.001
"""Probability below which a call that was not chosen is not worth a word."""
STORES, RUNS = ("live/*/*/store.db", "served/store.db"), "runs/*/*"
"""Where the commands put stores and run directories, unless they are told another place."""
MARGIN = 39
"""Columns before what a line tells; on a terminal the rest of a long one is folded there."""
NARROW = 80
"""Columns of a terminal below which lines are not folded."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    try:
        records, place = _records(asked.correlation, asked.store, asked.run)
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE
    except (RecordLost, RepertoryError) as error:
        print(error, file=sys.stderr)
        return FAULT
    if not records:
        print(f"nothing is on record under {asked.correlation!r} in {place}", file=sys.stderr)
        return NOTHING
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for line in chain_lines(records):
        print(folded(line, width))
    return FOUND


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m telemetry.trace", description="Print a session or episode, decision by decision."
    )
    parser.add_argument("correlation", metavar="CORRELATION_ID")
    parser.epilog = (
        f"Without a place, stores ({', '.join(STORES)}) and runs ({RUNS}) are looked through, the newest first."
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--store", metavar="URL", help="a live team's store: sqlite:///PATH or postgresql://…")
    where.add_argument("--run", type=Path, metavar="RUN_DIR", help="a training run: its sampled episodes")
    return parser


def _records(correlation: str, store: str | None, run: Path | None) -> tuple[list[AnyRecord], str]:
    """The chain's records, and where they were looked for."""
    if store:
        return _from_store(correlation, store), store
    if run:
        return _from_run(correlation, run), str(run)
    here, looked = Path(), list[str]()
    for path in _newest([p for pattern in (*STORES, RUNS) for p in here.glob(pattern)]):
        is_store = path.is_file()
        if not is_store and not (path / RECORDS).is_dir():
            continue
        found = _from_store(correlation, f"sqlite:///{path}") if is_store else _from_run(correlation, path)
        looked.append(str(path))
        if found:
            return found, str(path)
    return [], ", ".join(looked) or f"{Path.cwd()}: there are neither stores nor runs; give --store or --run"


def _newest(paths: Sequence[Path]) -> list[Path]:
    return sorted(paths, key=lambda p: p.stat().st_mtime, reverse=True)


def _from_store(correlation: str, url: str) -> list[AnyRecord]:
    from runtime.store import history
    from telemetry.stored import stored

    with stored(url) as store:
        teams = store.read(lambda c: history.teams_of(c, correlation))
        return [r for t in teams for r in store.read(lambda c, t=t: history.of_session(c, t, correlation))]


def _from_run(correlation: str, run: Path) -> list[AnyRecord]:
    if not (run / RECORDS).is_dir():
        raise RecordLost(f"reading {run}", f"no {RECORDS}/ in it: not a run directory")
    for path in reversed(episode_files(run / RECORDS)):
        try:
            records = read_episode(path)
        except (RecordLost, UnicodeDecodeError) as error:
            print(f"{path} is left out: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        if records and records[0].correlation_id == correlation:
            return records
    return []


def chain_lines(records: Sequence[AnyRecord]) -> Iterator[str]:
    """The chain as text, a line a thing that happened; times are from the first record on (s).

    Of what an agent sees, the lines that it did not see at its decision before.
    """
    began, seen, who = records[0].at, dict[str, Observed](), ""
    for record in records:
        for name, text in _told(record, seen):
            agent = f"{record.agent}/{record.turn}" if isinstance(record, DecisionRecord) else ""
            shown = agent if agent != who else ""
            who = agent
            yield f"{record.at - began:+9.3f}  {shown:<16}  {name:<9} {text}"
        if isinstance(record, Observed):
            seen[record.agent] = record
    yield f"{records[-1].at - began:+9.3f}  {'':<16}  {'in all':<9} {_in_all(records)}"


def folded(line: str, width: int) -> str:
    """The line as a terminal of that many columns shows it best: what it tells in a column of its own."""
    if width < NARROW or len(line) <= width:
        return line
    room, rest = width - MARGIN, line[MARGIN:]
    parts = textwrap.wrap(rest, room, break_on_hyphens=False) or [rest]
    return "\n".join([line[:MARGIN] + parts[0], *(" " * MARGIN + part for part in parts[1:])])


def _in_all(records: Sequence[AnyRecord]) -> str:
    """What a chain came to."""
    told = story(records)
    decisions = told.decisions
    missing = sum(d.missing for d in decisions)
    parts = [
        f"{len(decisions)} decision{'s' if len(decisions) != 1 else ''}",
        f"paid {_signed(sum(d.paid for d in decisions))}" + (f" (missing in {missing})" if missing else ""),
        f"{sum(d.cost_usd for d in decisions):g} USD",
    ]
    if tokens := sum(d.tokens_in + d.tokens_out for d in decisions):
        parts.append(f"{tokens:,} tokens")
    return ", ".join(parts)


def _signed(value: float) -> str:
    """With its sign, and zero without one."""
    return f"{value:+.2f}" if value else "0.00"


def _told(record: AnyRecord, seen: dict[str, Observed]) -> Iterator[tuple[str, str]]:
    """What to say about a record: a word and a line each."""
    match record:
        case EpisodeOpened():
            yield "opened", _opening(record)
        case Observed():
            known = seen[record.agent].text.splitlines() if record.agent in seen else []
            yield from (("saw", line) for line in record.text.splitlines() if line not in known)
        case Decided():
            yield "chose", _chosen(record, seen.get(record.agent))
        case ToolAnswered():
            yield ("answered" if record.ok else "failed"), _answer(record)
        case Sent():
            yield "sent", f"to {record.to}: {short_json(record.payload)}"
        case Rewarded():
            yield "paid", _paid(record)
        case _:
            yield from _seldom(record)


def _seldom(record: AnyRecord) -> Iterator[tuple[str, str]]:
    """What does not happen in every chain."""
    match record:
        case ModelCalled():
            degraded = ", degraded" if record.degraded else ", as before" if record.cached else ""
            cost = "" if record.cost_usd is None else f", {record.cost_usd:g} USD"
            spent = f"{record.tokens_in} + {record.tokens_out} tokens, {record.ms:.0f} ms{cost}{degraded}"
            yield "asked", f"{record.model or 'no model'}: {spent}"
        case ToolUndone():
            yield "undid", record.tool if record.fault is None else f"{record.tool}: {record.fault.message}"
        case Feedback():
            yield "feedback", f"{record.value:+g} from {record.source or 'somebody'}"
        case EpisodeEnded():
            yield "ended", f"{end_text(record)} {short_json(dict(record.outcome))}"
        case StateChanged() if record.refused or "error" in (record.before, record.after):
            yield "state", f"{record.agent}: {record.before} to {record.after} {record.refused}".rstrip()
        case AgentStarted():
            yield "started", f"{record.agent}, pid {record.pid}, epoch {record.epoch}"
        case AgentStopped():
            yield "stopped", f"{record.agent}: {record.why}"
        case Redelivered():
            yield "again", f"{record.agent}: the event was tried {record.attempt} times"
        case _:
            pass  # a tool's call stands with the decision, and a state that changes as it should says nothing


def _opening(record: EpisodeOpened) -> str:
    at = datetime.fromtimestamp(record.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    version = f", version {record.version}" if record.version else ""
    return f"{record.correlation_id} at {at}: {record.team} on {record.scenario}, seed {record.seed}{version}"


def _chosen(record: Decided, seen: Observed | None) -> str:
    call = chosen_text(record)
    likely = "" if record.logp is None else f"  p {exp(record.logp):.3f}"
    odds = record.probabilities
    if odds is None or seen is None or len(odds) != len(seen.candidates):
        return call + likely
    ranked = sorted(zip(odds, seen.candidates, strict=True), key=lambda pair: -pair[0])
    others = [f"{call_text(c)} {p:.3f}" for p, c in ranked if c != record.call and p >= RARE][:OTHERS]
    return f"{call}{likely}" + (f"  (others: {', '.join(others)})" if others else "")


def _answer(record: ToolAnswered) -> str:
    cost = f"  {record.cost_usd:g} USD" if record.cost_usd else ""
    if record.fault is not None:
        return f"{record.tool or 'call'}: {fault_text(record.fault)}{cost}"
    before = "" if record.raw is None else f"  (before coercion: {short_json(record.raw)})"
    return f"{record.tool}: {short_json(record.value)}{before}{cost}"


def _paid(record: Rewarded) -> str:
    whom = "everybody" if record.scope == "team" else record.agent
    if record.value is None:
        return missing_text(record)
    z = "" if record.standardized is None else f" (standardized {_signed(record.standardized)})"
    return f"{record.term} {_signed(record.value)}{z} to {whom}"


if __name__ == "__main__":
    sys.exit(main())
