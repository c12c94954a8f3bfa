"""A chain that failed half way is compensated: what its tools did outside is undone, the last first."""

from collections.abc import Callable, Iterable, Mapping

from runtime.background import within
from runtime.records import Fault, Record, ToolAnswered, ToolCalled, ToolUndone
from runtime.seams import Clock, now
from runtime.types import Tool, World


def to_undo(records: Iterable[Record], tools: Mapping[str, Tool]) -> list[ToolCalled]:
    """The calls of one session that have an undo and are not undone yet, the last first.

    A call whose answer is unknown, or came too late, is among them: its effect may have happened.
    """
    called: list[ToolCalled] = []
    undone: set[str] = set()
    for record in records:
        if isinstance(record, ToolCalled):
            outside = tools[record.tool].outside if record.tool in tools else None
            if outside is not None and outside.undo is not None:
                called.append(record)
        elif isinstance(record, ToolUndone) and record.ok:
            undone.add(record.decision_id)
    return [c for c in reversed(called) if c.decision_id not in undone]


def compensate(
    records: Iterable[Record],
    tools: Mapping[str, Tool],
    world: World,
    note: Callable[[ToolUndone], None],
    clock: Clock = now,
) -> bool:
    """Undo what a session's tools did outside; whether all of it could be undone.

    After a crash, call it again with the history: what was noted as undone is left alone, so only the undo under way at
    the crash is run twice. One that fails is noted and left, and the others are undone all the same.

    Args:
        records: the session's history.
        tools: the team's.
        world: what they act on.
        note: keeps each record for good before the next undo is begun.
        clock: Unix time, s.
    """
    history = list(records)
    answers = {r.decision_id: r for r in history if isinstance(r, ToolAnswered)}
    complete = True
    for call in to_undo(history, tools):
        undone = _undone(call, answers.get(call.decision_id), tools[call.tool], world, clock)
        note(undone)
        complete = complete and undone.ok
    return complete


def _undone(call: ToolCalled, answer: ToolAnswered | None, tool: Tool, world: World, clock: Clock) -> ToolUndone:
    outside = tool.outside
    assert outside is not None, "only such calls are undone"
    undo = outside.undo
    assert undo is not None, "only such calls are undone"
    value = answer.value if answer is not None and answer.ok else None
    given = {**call.args, outside.key: call.decision_id} if outside.key else dict(call.args)
    fault = None
    try:
        within(outside.timeout_s, lambda: undo(world, value, **given), f"undoing {tool.name}")
    except Exception as error:  # noqa: BLE001 - whatever the user's undo raises is recorded, and the others go on
        fault = Fault(code="tool_failed", message=f"{type(error).__name__}: {error}")
    return ToolUndone(
        correlation_id=call.correlation_id,
        at=clock(),
        agent=call.agent,
        turn=call.turn,
        tool=tool.name,
        ok=fault is None,
        fault=fault,
    )
