"""Does anybody see the hidden truth before a tool has been asked?

*Swap*: the same run with another truth behind it must look the same until a tool answers. *Canary*: markers planted in
free-text truths, and the truths themselves in disguise, are searched in all that agents see.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import cast

from rewards.audit.findings import Evidence, Finding, Where, error, note
from rewards.audit.markers import disguised, found_in, top
from rewards.audit.material import Material
from rewards.audit.players import NoLegalCall
from rewards.audit.playing import Episode, Move, Table
from runtime.leaves import leaves, replaced
from runtime.records import Json, Sent, ToolAnswered, ToolCall, ToolCalled
from runtime.types import HAND_OVER, PASS_TURN, Observation, Scenario

CANARY = "zq7f3akw91xv"
"""A text that no team writes by itself."""
_FEW = 12
"""Different values up to which a truth is a choice among known ones, and no free text."""


def truth_in_observation(material: Material) -> Iterator[Finding]:
    """Swapped truths, then planted and natural markers."""
    told: set[tuple[str, str]] = set()
    for finding in (*_swaps(material), *_canaries(material), *_disguises(material), *_briefs(material)):
        key = (finding.remedy, finding.where.agent)
        if key not in told:
            told.add(key)
            yield finding


def hidden(material: Material, truth: Mapping[str, Json]) -> dict[str, Json]:
    """The truths that the opening is not meant to give away."""
    meant = material.the_team.opening_reveals
    return {k: v for k, v in truth.items() if k not in meant}


# -- swap


def _swaps(material: Material) -> Iterator[Finding]:
    cases = list(material.scenarios(2 * material.effort.examples))
    tried = judged = 0
    for here, there in pairwise(cases):
        truth = {**here.truth, **{k: v for k, v in hidden(material, there.truth).items() if k in here.truth}}
        if truth == here.truth:
            continue
        tried += 1
        other = dataclasses.replace(here, truth=truth)
        try:
            found = [f for player in ("", "random", "first_legal") for f in _compared(material, here, other, player)]
        except NoLegalCall:
            continue
        except Exception:  # noqa: BLE001, S112 - a world may refuse a truth that does not belong to its case
            continue
        judged += 1
        yield from found
    if tried and not judged:
        yield note("no world could be built with another case's truth: the swap test could not be made")


def _compared(material: Material, here: Scenario, other: Scenario, player: str) -> Iterator[Finding]:
    """Both runs in step, with the same calls, until a tool is asked; the player "" passes the case along."""
    one, two = (material.opens(s, material.seed) for s in (here, other))
    sitting = material.sit(player or "empty", here)
    while one.to_act and two.to_act and not any(isinstance(r, ToolCalled) for r in one.records):
        for agent in material.agents:
            a, b = one.observe(agent), two.observe(agent)
            if (a.text, a.mask, a.candidates) != (b.text, b.mask, b.candidates):
                yield _shown(a, b, here)
        if player:
            sitting.step()
            actions = {m.agent: m.action for m in sitting.episode().moves[-len(one.to_act) :]}
        else:
            actions = {a: p for a in one.to_act if (p := _pass(one.observe(a))) is not None}
        if len(actions) < len(one.to_act):
            return
        _act(one, actions)
        _act(two, actions)


def _pass(seen: Observation) -> int | None:
    places = [i for i, c in enumerate(seen.candidates) if c.tool in (HAND_OVER, PASS_TURN) and seen.mask[i]]
    return places[0] if places else None


def _act(table: Table, actions: Mapping[str, int | ToolCall]) -> None:
    if len(actions) == 1:
        ((agent, action),) = actions.items()
        table.act(agent, action)
    else:
        table.act_all(actions)


def _shown(a: Observation, b: Observation, case: Scenario) -> Finding:
    if a.text != b.text:
        pairs = [(x, y) for x, y in zip(a.text.splitlines(), b.text.splitlines(), strict=False) if x != y]
        one, two = pairs[0] if pairs else (a.text[-200:], b.text[-200:])
        what = "text"
    elif a.mask != b.mask:
        one, two, what = str(a.mask), str(b.mask), "mask"
    else:
        one, two, what = str(a.candidates), str(b.candidates), "order of candidates"
    return error(
        f"what the agent sees before any tool is asked changes with the hidden truth (its {what})",
        "show only what is visible, or name the truth in Team.opening_reveals",
        Where(agent=a.agent, step=a.turn, episode=case.id),
        Evidence(saw=one[:300], used=f"with another truth: {two[:300]}"),
    )


# -- canary


def _canaries(material: Material) -> Iterator[Finding]:
    for case in material.scenarios(3):
        for path, text in _free_texts(material, case):
            marked = replaced(dict(case.truth), path, f"{text} {CANARY}")
            scenario = dataclasses.replace(case, truth=cast("dict[str, Json]", marked))
            for player in ("random", "ask_everything", "first_legal"):
                try:
                    episode = material.play(player, scenario)
                except Exception:  # noqa: BLE001 - the world knows only its own values: a choice after all
                    break
                yield from _marked(episode, path, CANARY)


def _free_texts(material: Material, case: Scenario) -> Iterator[tuple[str, str]]:
    choices = _choices(material)
    for path, leaf in leaves(hidden(material, case.truth)):
        if isinstance(leaf, str) and leaf and leaf not in choices:
            yield path, leaf


def _choices(material: Material) -> set[str]:
    """Values that are chosen among a few: those that come up again and again, and those that calls can name."""
    by_path: dict[str, Counter[str]] = {}
    for case in material.scenarios(60):
        for path, leaf in leaves(case.truth):
            by_path.setdefault(path, Counter())[str(leaf)] += 1
    few = {v for seen in by_path.values() if len(seen) <= _FEW and seen.total() > 2 * len(seen) for v in seen}
    calls = {
        str(v)
        for move in material.episodes("first_legal", 1)[0].moves
        for c in move.seen.candidates
        for v in (c.tool, *c.args.values())
    }
    return few | calls | set(material.the_team.tools)


def _marked(episode: Episode, path: str, marker: str) -> Iterator[Finding]:
    told = False
    for move in episode.moves:
        answers = _answers_before(episode, move)
        ways = {way for a in answers if (way := found_in(marker, a))}
        for line in move.seen.seen:
            way = found_in(marker, line.text) if line.kind != "error" else ""
            if way and way not in ways:
                yield _quoted(episode, move, path, way, line.text)
            elif way in ("verbatim", "normalized") and not told and line.kind == "answer":
                told = True
                yield note(f"tool {line.source} quotes truth{path}: is it meant to?", Where(agent=move.agent))
            elif way and way not in ("verbatim", "normalized"):
                yield _quoted(episode, move, path, way, line.text)
    for record in episode.records:
        if isinstance(record, Sent) and (way := found_in(marker, str(record.payload))) not in ("", "verbatim"):
            yield _sent(episode, record, path, way)


def _answers_before(episode: Episode, move: Move) -> list[str]:
    end = episode.cuts[move.step]
    return [str(r.value) for r in episode.records[:end] if isinstance(r, ToolAnswered) and r.ok]


def _quoted(episode: Episode, move: Move, path: str, way: str, line: str) -> Finding:
    return error(
        f"what the agent sees holds truth{path} ({way}), which no tool has told it in plain words",
        "keep the truth out of what is shown, in whatever spelling",
        Where(agent=move.agent, step=move.step, episode=episode.name, player=episode.player),
        Evidence(saw=line[:300], used=f"truth{path}"),
    )


def _sent(episode: Episode, record: Sent, path: str, way: str) -> Finding:
    return error(
        f"a message to {record.to} holds truth{path} ({way})",
        "keep the truth out of messages, in whatever spelling",
        Where(agent=record.agent, episode=episode.name, player=episode.player),
        Evidence(saw=str(record.payload)[:300], used=f"truth{path}"),
    )


# -- the truths themselves, in disguise


def _disguises(material: Material) -> Iterator[Finding]:
    meant = material.the_team.opening_reveals
    for player in ("random", "ask_everything"):
        for episode in material.episodes(player, material.effort.examples):
            case = episode.scenario
            salts = (case.id, str(case.seed), case.id.rsplit("-", 1)[-1])
            wanted = [(p, str(v)) for p, v in leaves(case.truth) if isinstance(v, str) and v and top(p) not in meant]
            for move in episode.moves:
                for path, value in wanted:
                    way = disguised(value, move.seen.text, salts)
                    if way and not _plainly(value, move.seen.text, way):
                        line = next((s.text for s in move.seen.seen if disguised(value, s.text, salts)), move.seen.text)
                        yield _quoted(episode, move, path, way, line)


def _plainly(value: str, text: str, way: str) -> bool:
    """Whether a text that decodes to the value says it openly too: then the disguise hides nothing."""
    return way == "reversed" and value in text


def _briefs(material: Material) -> Iterator[Finding]:
    team = material.the_team
    static = [(f"the brief of {r.name}", r.brief) for r in team.roles]
    static += [(f"the description of tool {t.name}", t.description) for t in team.tools.values()]
    for case in material.scenarios(material.effort.examples):
        for path, text in _free_texts(material, case):
            for what, told in static:
                if len(text) >= 8 and (way := found_in(text, told)):
                    yield error(
                        f"{what} holds truth{path} of a case ({way})",
                        "write briefs and descriptions that hold for every case",
                        Where(episode=case.id),
                        Evidence(saw=told[:300], used=text[:300]),
                    )
