"""A team of the seats and tools that were found in a framework, and of what the user gives beside them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from envs.adapters.beside import ANSWER, Beside, Scene, Seat, listed
from envs.adapters.order import taken_over
from runtime.errors import TeamError
from runtime.records import Json, ToolCall
from runtime.tools import Contract, finite_calls, tool
from runtime.types import AgentId, Outside, Role, Scenario, Team, Tool


def assembled(
    beside: Beside,
    seats: Mapping[AgentId, Seat],
    first: AgentId,
    tools: Mapping[str, Tool],
    world: Callable[[Scenario], Scene],
) -> Team:
    """The team.

    Args:
        beside: what the user gives.
        seats: what was found, by name.
        first: the seat that a case begins with.
        tools: the tools that the framework runs, by name.
        world: makes an episode's scene.

    Raises:
        TeamError: something that was found has no place in a team, or something is missing; all that was found wrong
            with tools at once.
    """
    chosen, turns = taken_over(seats, first, beside.order)
    ours = {n: _as_asked(t, beside) for n, t in {**tools, **beside.tools}.items()}
    problems = [*_unknown(beside, chosen, ours), *_unusable(beside, chosen, ours)]
    if problems:
        raise TeamError(f"team {beside.name}:\n  " + "\n  ".join(problems))
    ending = {s.name for s in chosen if s.may_end and not any(ours[t].ends for t in s.tools)}
    used = {t: ours[t] for s in chosen for t in s.tools}
    return Team(
        name=beside.name,
        roles=tuple(_role(s, ours, beside, says=s.name in ending) for s in chosen),
        tools=used | ({ANSWER: tool(answer, ends=True)} if ending else {}),
        turns=turns,
        world=world,
        generate=beside.generate,
        terms=dict(beside.terms),
        baselines=dict(beside.baselines),
        repeats=beside.repeats,
        max_turns=beside.max_turns,
    )


def answer(scene: Scene, text: str) -> str:
    """Say the last word, which ends the case."""
    scene.answer = text
    return text


def _as_asked(given: Tool, beside: Beside) -> Tool:
    """A tool with what the user says of it: whether it ends the case, where it acts, what it costs, what is filled."""
    made = replace(given, ends=given.ends or given.name in beside.ends)
    if given.name in beside.outside and made.outside is None:
        made = replace(made, outside=Outside())
    if given.name in beside.cost_usd:
        made = replace(made, cost_usd=beside.cost_usd[given.name])
    return _filled(made, beside.filled[given.name]) if given.name in beside.filled else made


def _filled(given: Tool, keys: Mapping[str, str]) -> Tool:
    """The tool without these arguments, which the case fills."""

    def run(scene: Scene, **args: Json) -> Json:
        return given.run(scene, **{a: scene.scenario.visible[k] for a, k in keys.items()}, **args)

    run.__wrapped__ = given.run  # pyright: ignore[reportFunctionMemberAccess] what the hash of the source looks at
    schema = {**given.input_schema}
    schema["properties"] = {k: v for k, v in schema.get("properties", {}).items() if k not in keys}
    schema["required"] = [r for r in schema.get("required", ()) if r not in keys]
    return replace(given, input_schema=schema, run=run)


# -- what does not fit


def _unknown(beside: Beside, chosen: Sequence[Seat], ours: Mapping[str, Tool]) -> Iterator[str]:
    """Names that the user gives and nothing has."""
    named: dict[str, Any] = {
        "ends": beside.ends,
        "calls": beside.calls,
        "filled": beside.filled,
        "outside": beside.outside,
        "cost_usd": beside.cost_usd,
    }
    known = {t for s in chosen for t in s.tools}
    for argument, names in named.items():
        for name in (n for n in names if n not in known):
            yield f"{argument} names {name!r}, which is no tool of these roles: {', '.join(sorted(known)) or 'none'}"
    for name in sorted(known - set(ours)):
        owner = next(s.name for s in chosen if name in s.tools)
        yield f"{owner} is bound to the tool {name!r}, and nothing is found that runs it: give one in tools="
    if ANSWER in known and any(s.may_end for s in chosen):
        yield f"a tool is called {ANSWER!r}, which is how a role says the last word: rename the tool"


def _unusable(beside: Beside, chosen: Sequence[Seat], ours: Mapping[str, Tool]) -> Iterator[str]:
    """Tools whose calls cannot be listed, calls that do not fit, and last words that are not there."""
    for name in sorted({t for s in chosen for t in s.tools} & set(ours)):
        given = listed(ours[name], beside)
        if given is None and finite_calls(ours[name]) is None:
            free = ", ".join(ours[name].input_schema.get("properties", {}))
            yield f"tool {name} takes arguments that cannot be listed ({free}): give calls= or filled= for it"
        for call in given or ():
            if problem := Contract(ours[name].input_schema).problem(dict(call.args)):
                yield f"calls: {name} cannot be called with {dict(call.args)}: {problem[0]}"
    for seat in (s for s in chosen if s.may_end):
        if not beside.answers and not any(ours[t].ends for t in seat.tools if t in ours):
            yield (
                f"{seat.name} may end a case, and no tool of its does: name the tools that end one (ends=), or what "
                "can be answered (answers=)"
            )
    if not chosen[-1].may_end and not any(ours[t].ends for t in chosen[-1].tools if t in ours):
        yield f"{chosen[-1].name} stands last, and no case ends with it: name the tools that end one (ends=)"


def _role(seat: Seat, ours: Mapping[str, Tool], beside: Beside, *, says: bool) -> Role:
    calls: list[ToolCall] = []
    for name in seat.tools:
        calls += listed(ours[name], beside) or finite_calls(ours[name]) or ()
    if says:
        calls += [ToolCall(tool=ANSWER, args={"text": text}) for text in beside.answers]
    tools = (*seat.tools, ANSWER) if says else seat.tools
    return Role(name=seat.name, brief=seat.brief, tools=tools, calls=tuple(calls))
