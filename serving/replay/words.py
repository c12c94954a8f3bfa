"""Replays as people read them: one decision by decision, many as a table."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from assembly.paid import Verdict
from runtime.records import Decided, EpisodeEnded, ToolAnswered, ToolCall
from serving.replay.replaying import Option, Parting, Replay
from telemetry.episode import call_text, chosen_text, fault_text, short_json

LIKELY = 0.001
"""Probability below which a call that neither chose is not worth a line."""
SHOWN = 20
"""Sessions that the table names, those that changed most first; of the others only the counts."""


def lines_of(replay: Replay, name: str) -> Iterator[str]:
    """A replay, decision by decision; ``name`` is what its version is called."""
    yield f"{replay.session} on {replay.scenario}, recorded with {replay.recorded[:12]}, now with {name}"
    answers = {r.decision_id: r for r in replay.records if isinstance(r, ToolAnswered)}
    for place, decided in enumerate(r for r in replay.records if isinstance(r, Decided)):
        if replay.parting and place == replay.agreed:
            yield from _parted(replay.parting, name)
        mark = "=" if place < replay.agreed else "*"
        answer = answers.get(decided.decision_id)
        yield f"  {mark} {decided.agent}/{decided.turn}  {chosen_text(decided)}{_answered(answer)}"
    decided_all = sum(isinstance(r, Decided) for r in replay.records)
    if replay.parting and decided_all <= replay.agreed:
        yield from _parted(replay.parting, name)
    yield from _end(replay)


def _parted(parting: Parting, name: str) -> Iterator[str]:
    yield f"  parted after {parting.decision} decisions, at {parting.agent}/{parting.turn}"
    seen, sees = parting.seen.splitlines(), parting.sees.splitlines()
    yield from (f"      saw   {line}" for line in seen)
    if seen != sees:
        yield from (f"      now   {line}" for line in sees if line not in seen)
        yield from (f"      gone  {line}" for line in seen if line not in sees)
    yield f"      chose   {_call(parting.was, 'nothing: it had ended, or was not its turn')}"
    yield f"      chooses {_call(parting.now, 'nothing that can be read')}  ({name})"
    for option in sorted(parting.options, key=lambda o: -max(o.was or 0.0, o.now or 0.0)):
        if _worth_a_line(option, parting):
            yield f"        was {_share(option.was)}  now {_share(option.now)}  {call_text(option.call)}"
    yield "      from here on, what was recorded says nothing any more"


def _worth_a_line(option: Option, parting: Parting) -> bool:
    chosen = option.call in (parting.was, parting.now)
    return chosen or max(option.was or 0.0, option.now or 0.0) >= LIKELY


def _end(replay: Replay) -> Iterator[str]:
    if replay.stopped:
        yield f"  stopped: {replay.stopped}"
        return
    end = next(r for r in replay.records if isinstance(r, EpisodeEnded))
    how = "in the simulated world" if replay.parting else "as recorded"
    yield f"  ended {how}, {'well' if end.success else 'badly'}: {short_json(dict(end.outcome))}"
    paid = replay.paid
    if paid.before is None or paid.after is None:
        yield "  paid: no reward term is known of both"
    else:
        yield f"  paid {paid.before:+.2f}, now {paid.after:+.2f}: {paid.verdict()}"
    yield from (f"    {n} {paid.was[n]:+.2f}, now {paid.now[n]:+.2f}" for n in paid.moved())
    if paid.left_out:
        yield f"  not compared, since one of the two has no value of it: {', '.join(paid.left_out)}"


def table_of(replays: Sequence[Replay], skipped: Sequence[str], name: str) -> Iterator[str]:
    """Many replays: how many went better and worse, which, and which reward terms moved."""
    counts: Counter[Verdict] = Counter(r.paid.verdict() for r in replays)
    same = sum(r.parting is None and not r.stopped for r in replays)
    verdicts: tuple[Verdict, ...] = ("better", "worse", "same", "unknown")
    told = ", ".join(f"{counts[v]} {v}" for v in verdicts)
    yield f"{len(replays)} sessions under {name}: {told}; {same} decided throughout as recorded"
    ranked = sorted((r for r in replays if r.parting is not None or r.stopped), key=_change)
    if ranked:
        yield f"  {'session':<34} {'was':>8} {'now':>8}  {'':<7}  parted at"
    yield from (f"  {_row(r)}" for r in ranked[:SHOWN])
    if len(ranked) > SHOWN:
        yield f"  … and {len(ranked) - SHOWN} more"
    yield from _terms(replays)
    yield from (f"  left out: {why}" for why in skipped)


def _change(replay: Replay) -> tuple[bool, float]:
    """Worst first; what is not known last."""
    before, after = replay.paid.before, replay.paid.after
    return (True, 0.0) if before is None or after is None else (False, after - before)


def _row(replay: Replay) -> str:
    parting, paid = replay.parting, replay.paid
    place = stopped = ""
    if parting is not None:
        place = f"  {parting.agent}/{parting.turn}: {_call(parting.was, 'nothing')} -> {_call(parting.now, 'nothing')}"
    if replay.stopped:
        stopped = f"  (stopped: {replay.stopped})"
    return f"{replay.session:<34} {_pay(paid.before)} {_pay(paid.after)}  {paid.verdict():<7}{place}{stopped}"


def _terms(replays: Sequence[Replay]) -> Iterator[str]:
    moved: dict[str, list[float]] = defaultdict(list[float])
    for replay in replays:
        for term, change in replay.paid.moved().items():
            moved[term].append(change)
    if moved:
        yield f"  {'term':<20} {'up':>5} {'down':>5} {'by, a session':>14}"
    for term, changes in sorted(moved.items()):
        up = sum(c > 0 for c in changes)
        yield f"  {term:<20} {up:>5} {len(changes) - up:>5} {fmean(changes):>+14.3f}"


def as_data(replay: Replay) -> dict[str, Any]:
    """A replay for programs."""
    parting = replay.parting
    return {
        "session": replay.session,
        "scenario": replay.scenario,
        "recorded": replay.recorded,
        "version": replay.version,
        "agreed": replay.agreed,
        "parting": None if parting is None else _parting_data(parting),
        "stopped": replay.stopped,
        "success": replay.success,
        "verdict": replay.paid.verdict(),
        "was": {"return": replay.paid.before, "terms": dict(replay.paid.was)},
        "now": {"return": replay.paid.after, "terms": dict(replay.paid.now)},
        "decisions": [
            {"agent": r.agent, "turn": r.turn, "call": r.call.model_dump()}
            for r in replay.records
            if isinstance(r, Decided)
        ],
    }


def _parting_data(parting: Parting) -> dict[str, Any]:
    return {
        "agent": parting.agent,
        "turn": parting.turn,
        "decision": parting.decision,
        "seen": parting.seen,
        "sees": parting.sees,
        "was": parting.was.model_dump() if parting.was else None,
        "now": parting.now.model_dump() if parting.now else None,
        "options": [{"call": o.call.model_dump(), "was": o.was, "now": o.now} for o in parting.options],
    }


def _answered(answer: ToolAnswered | None) -> str:
    if answer is None:
        return ""
    return f" -> {short_json(answer.value) if answer.fault is None else fault_text(answer.fault)}"


def _call(call: ToolCall | None, nothing: str) -> str:
    return call_text(call) if call is not None and call.tool else nothing


def _share(value: float | None) -> str:
    return "    -" if value is None else f"{value:5.3f}"


def _pay(value: float | None) -> str:
    return f"{'unknown' if value is None else format(value, '+.2f'):>8}"
