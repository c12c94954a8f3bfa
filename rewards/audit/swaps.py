"""The same run twice, with another hidden truth behind it: it must look the same until a tool tells the two apart.

A tool that the best play asks may tell, by its answer or by what the world shows afterwards; where it does the latter,
the world tells by what it shows. Any tool may tell in words. What is left is truth that shows without having been
told: at the start, after a tool that has answered the same in both runs, in an answer that only its form makes another
one (order, spaces, signs), in an error that names the right answer.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from rewards.audit.findings import Evidence, Finding, Where, error, note, warning
from rewards.audit.material import Material
from rewards.audit.needs import Needs, needs_of
from rewards.audit.players import ALWAYS, NoLegalCall
from rewards.audit.playing import Table
from runtime.leaves import leaves
from runtime.records import Json, ToolAnswered, ToolCall, ToolCalled
from runtime.tools import canonical
from runtime.types import HAND_OVER, PASS_TURN, Observation, Scenario

LONGEST = 12
"""Steps of a run that are compared."""
_SIMPLE = 4
"""Pairs of cases on which every tool is asked again and again."""
_PASSING = ""
"""The player that only passes the case along."""
Values = Mapping[str, frozenset[str]]
"""What is hidden in some cases, as text, by path."""


def swaps(material: Material) -> Iterator[Finding]:
    """Pairs of cases, the second one's truth behind the first; by chance, by rule, and with each tool in turn."""
    cases, needs = list(material.scenarios(2 * material.effort.examples)), needs_of(material)
    values = _values(cases)
    tried = judged = 0
    later: list[Finding] = []
    by_look = False
    for here, there in pairwise(cases):
        truth = {**here.truth, **{k: v for k, v in hidden(material, there.truth).items() if k in here.truth}}
        if truth == here.truth:
            continue
        tried += 1
        other = dataclasses.replace(here, truth=truth)
        each = [p for p in material.players if p.startswith(ALWAYS)] if tried <= _SIMPLE else []
        players = (_PASSING, "random", "first_legal", *each)
        pairs = {player: _Pair(material, needs, here, other, values) for player in players}
        try:
            found = [f for player, pair in pairs.items() for f in pair.compared(player)]
        except NoLegalCall:
            continue
        except Exception:  # noqa: BLE001, S112 - a world may refuse a truth that does not belong to its case
            continue
        judged += 1
        yield from found
        later += [f for pair in pairs.values() for f in pair.later]
        by_look |= any(pair.by_look for pair in pairs.values())
    if not by_look:
        yield from later
    if tried and not judged:
        yield note("no world could be built with another case's truth: the swap test could not be made")


def hidden(material: Material, truth: Mapping[str, Json]) -> dict[str, Json]:
    """The truths that the opening is not meant to give away."""
    meant = material.the_team.opening_reveals
    return {k: v for k, v in truth.items() if k not in meant}


def _values(cases: Sequence[Scenario]) -> Values:
    pairs = [(path, str(value)) for case in cases for path, value in leaves(dict(case.truth))]
    return {path: frozenset(v for p, v in pairs if p == path) for path, _ in pairs}


class _Pair:
    """Two runs in step, with the same calls."""

    def __init__(self, material: Material, needs: Needs, here: Scenario, other: Scenario, values: Values) -> None:
        self.material, self.needs, self.here, self.other, self.values = material, needs, here, other, values
        self.by_look = False
        """A tool that good play needs has changed what is seen, and told nothing: the world tells by what it shows."""
        self.later: list[Finding] = []
        """What shows after tools that good play does not need have been asked."""
        self.one, self.two = (material.opens(s, material.seed) for s in (here, other))

    def compared(self, player: str) -> Iterator[Finding]:
        """What differs before a tool has told the two apart."""
        sitting = self.material.sit(player or "empty", self.here)
        for _ in range(LONGEST):
            if not self.one.to_act or not self.two.to_act:
                return
            asked = {r.tool for r in self.one.records if isinstance(r, ToolCalled)}
            differing = list(self._observed(asked))
            if differing:
                yield from self._sorted(differing, asked)
                return
            if player:
                sitting.step()
                actions = {m.agent: m.action for m in sitting.episode().moves[-len(self.one.to_act) :]}
            else:
                actions = {a: p for a in self.one.to_act if (p := _pass(self.one.observe(a))) is not None}
            if len(actions) < len(self.one.to_act):
                return
            since = len(self.one.records), len(self.two.records)
            _act(self.one, actions)
            _act(self.two, actions)
            answered = [_answers(t, s) for t, s in zip((self.one, self.two), since, strict=True)]
            if [_said(r) for r in answered[0]] != [_said(r) for r in answered[1]]:
                yield from self._told_apart(*answered)
                return

    # -- before a tool has told

    def _sorted(self, differing: list[Finding], asked: set[str]) -> Iterator[Finding]:
        """Those of the start at once; the others wait until it is known whether the world tells by what it shows."""
        if self.needs.meant(asked):
            self.by_look = True
        elif asked:
            self.later += differing
        else:
            yield from differing

    def _observed(self, asked: set[str]) -> Iterator[Finding]:
        for agent in self.material.agents:
            a, b = self.one.observe(agent), self.two.observe(agent)
            if (a.text, a.mask, a.candidates) != (b.text, b.mask, b.candidates):
                yield self._shown(a, b, asked)

    def _shown(self, a: Observation, b: Observation, asked: set[str]) -> Finding:
        what, one, two = _difference(a, b)
        say = error if self.needs.known or not asked else warning
        when = f"although {_listed(asked)} told nothing of it" if asked else "before any tool is asked"
        why = f", {self.needs.why_not(asked)}" if asked else ""
        return say(
            f"what the agent sees changes with the hidden truth {when} (its {what}){why}",
            "show only what is visible, or name the truth in Team.opening_reveals",
            Where(agent=a.agent, step=a.turn, episode=self.here.id),
            Evidence(saw=one[:300], used=f"with another truth: {two[:300]}"),
        )

    # -- when one tells

    def _told_apart(self, ones: list[ToolAnswered], twos: list[ToolAnswered]) -> Iterator[Finding]:
        for a, b in zip(ones, twos, strict=False):
            for failed, instead, case in ((a, b, self.here), (b, a, self.other)):
                path = "" if failed.ok or _said(a) == _said(b) else self._named(failed, case)
                if path:
                    yield self._in_error(failed, instead, path)
            if a.ok and b.ok and a.value != b.value and not self.needs.meant({a.tool}) and _same_words(a, b):
                yield self._in_form(a, b)

    def _named(self, failed: ToolAnswered, case: Scenario) -> str:
        """The path of the hidden value that an error names, that one and no other, though the call did not."""
        said = next((r.args for r in reversed(self.one.records) if isinstance(r, ToolCalled)), {})
        called = canonical(dict(said))
        for path, value in leaves(hidden(self.material, case.truth)):
            known = self.values.get(path, frozenset())
            named = {v for v in known if v and _word(v, _fault(failed)) and not _word(v, called)}
            if named == {str(value)} and len(known) > 1 and not isinstance(value, bool):
                return path
        return ""

    def _in_error(self, a: ToolAnswered, b: ToolAnswered, path: str) -> Finding:
        return error(
            f"an error of tool {a.tool} names truth{path}, which the call did not name: to call anything is to be told",
            "let the error say that the call was wrong, and not what would have been right",
            Where(agent=a.agent, step=a.turn, episode=self.here.id),
            Evidence(saw=_fault(a)[:300], used=f"with another truth: {_fault(b)[:300] or canonical(b.value)[:300]}"),
        )

    def _in_form(self, a: ToolAnswered, b: ToolAnswered) -> Finding:
        say = error if self.needs.known else warning
        return say(
            f"the answer of tool {a.tool} says the same whatever the hidden truth is, and looks different: in its "
            f"order, its spaces or its signs; {self.needs.why_not({a.tool})}",
            "let the answer look the same, or say in words what the tool is meant to tell, and let a baseline ask it",
            Where(agent=a.agent, step=a.turn, episode=self.here.id),
            Evidence(saw=canonical(a.value)[:300], used=f"with another truth: {canonical(b.value)[:300]}"),
        )


def _pass(seen: Observation) -> int | None:
    places = [i for i, c in enumerate(seen.candidates) if c.tool in (HAND_OVER, PASS_TURN) and seen.mask[i]]
    return places[0] if places else None


def _act(table: Table, actions: Mapping[str, int | ToolCall]) -> None:
    if len(actions) == 1:
        ((agent, action),) = actions.items()
        table.act(agent, action)
    else:
        table.act_all(actions)


def _answers(table: Table, since: int) -> list[ToolAnswered]:
    return [r for r in table.records[since:] if isinstance(r, ToolAnswered)]


def _said(answer: ToolAnswered) -> tuple[str, bool, str, str]:
    return answer.tool, answer.ok, canonical(answer.value), _fault(answer)


def _fault(answer: ToolAnswered) -> str:
    return answer.fault.message if answer.fault else ""


def _words(value: Json) -> list[str]:
    return sorted(re.findall(r"\w+", canonical(value).lower()))


def _same_words(a: ToolAnswered, b: ToolAnswered) -> bool:
    return _words(a.value) == _words(b.value)


def _word(value: Json, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", text, re.IGNORECASE) is not None


def _listed(tools: set[str]) -> str:
    return " and ".join(sorted(tools))


def _difference(a: Observation, b: Observation) -> tuple[str, str, str]:
    """What differs first, and how it looks in both."""
    if a.text != b.text:
        pairs = [(x, y) for x, y in zip(a.text.splitlines(), b.text.splitlines(), strict=False) if x != y]
        return ("text", *(pairs[0] if pairs else (a.text[-200:], b.text[-200:])))
    if a.mask != b.mask:
        return "mask", str(a.mask), str(b.mask)
    return "order of candidates", str(a.candidates), str(b.candidates)
