"""Does an opening observation tell the truth? Worlds are built with another truth, and with texts planted in it."""

import dataclasses
from collections.abc import Iterator, Mapping
from itertools import pairwise

from envs.checks.cases import texts
from envs.checks.findings import Fail, Finding, calling
from envs.checks.subject import Subject
from envs.session import Session
from runtime.leaves import replaced
from runtime.records import ToolCall
from runtime.types import HAND_OVER, AgentId, Pipeline, Scenario

CANARY = "canary-7f3a91"
"""A text that no team writes by itself."""


def swapped_truth(subject: Subject) -> Iterator[Finding]:
    """With another scenario's truth, everybody sees the same until somebody asks."""
    found, meant = list(subject.scenarios()), subject.given.opening_reveals
    tried, judged, why = 0, 0, ""
    for one, other in pairwise(found):
        hidden = {k: v for k, v in other.truth.items() if k not in meant and k in one.truth}
        swapped = dataclasses.replace(one, truth={**one.truth, **hidden})
        if swapped.truth == one.truth:
            continue
        tried += 1
        try:
            before, again, after = (openings(subject, s) for s in (one, one, swapped))
        except Fail as error:
            why = f"{error.cause} at {error.where}"
            continue
        judged += 1
        steady = {agent: text for agent, text in before.items() if again.get(agent) == text}
        yield from _told(one, steady, after)  # what changes by itself is told by the check of repeatability
    if tried and not judged:
        message = f"no world could be built with another scenario's truth: {why}"
        yield Finding("hidden", ok=False, message=message, remedy="build the world from the truth it is given")


def _told(one: Scenario, before: Mapping[AgentId, str], after: Mapping[AgentId, str]) -> Iterator[Finding]:
    for agent, text in before.items():
        if after.get(agent) != text:
            lines = [a for a, b in zip(text.splitlines(), after.get(agent, "").splitlines(), strict=False) if a != b]
            message = f"the first observation changes with the hidden truth: {(lines or ['its length'])[0][:120]}"
            remedy = "show only what is visible, or name the truth in opening_reveals"
            yield Finding("hidden", ok=False, message=message, where=f"role {agent}, scenario {one.id}", remedy=remedy)


def planted_truth(subject: Subject) -> Iterator[Finding]:
    """A text planted in the truth shows up in no first observation."""
    meant = subject.given.opening_reveals
    for scenario in subject.scenarios(3):
        for path, text in texts(dict(scenario.truth)):
            if path[1:].split(".")[0].split("[")[0] in meant:
                continue
            truth = replaced(dict(scenario.truth), path, f"{text} {CANARY}")
            try:
                seen = openings(subject, dataclasses.replace(scenario, truth=truth))
            except Fail:
                continue  # a category: the world knows only its own values
            for agent, shown in seen.items():
                if CANARY in shown:
                    message = f"the first observation quotes truth{path}"
                    remedy = "show only what is visible, or name the truth in opening_reveals"
                    yield Finding("hidden", ok=False, message=message, where=f"role {agent}", remedy=remedy)


def openings(subject: Subject, scenario: Scenario) -> dict[AgentId, str]:
    """What each role sees when it first gets the floor, if nobody has asked anything."""
    session = subject.open(scenario)
    seen: dict[AgentId, str] = {}
    while not session.ended:
        agent = session.to_act[0]
        if agent in seen:
            break
        seen.update({a: _text(session, a) for a in session.to_act})
        call = _hand_over(session, agent)
        if call is None:
            break
        session.act(agent, call)
    for role in subject.team.roles:
        seen.setdefault(role.name, _text(session, role.name))
    return seen


def _text(session: Session, agent: AgentId) -> str:
    return calling(f"showing {agent} the world", lambda: session.observe(agent)).text


def _hand_over(session: Session, agent: AgentId) -> ToolCall | None:
    if not isinstance(session.team.turns, Pipeline):
        return None
    calls: list[ToolCall] = [c for c in session.observe(agent).candidates if c.tool == HAND_OVER]
    return calls[0] if calls else None
