"""Does anybody see the hidden truth before a tool has been asked?

*Swap* (``swaps``): the same run with another truth behind it must look the same until a tool tells. *Canary*: markers
planted in free-text truths, and the truths themselves in disguise, are searched in all that agents see.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import cast

from rewards.audit.findings import Evidence, Finding, Where, error, note, warning
from rewards.audit.markers import disguised, found_in, top
from rewards.audit.material import Material
from rewards.audit.needs import Needs, needs_of
from rewards.audit.playing import Episode, Move
from rewards.audit.swaps import hidden, swaps
from runtime.leaves import leaves, replaced
from runtime.records import Json, Sent, ToolAnswered
from runtime.types import Scenario, Seen

CANARY = "zq7f3akw91xv"
"""A text that no team writes by itself."""
_FEW = 12
"""Different values up to which a truth is a choice among known ones, and no free text."""


def truth_in_observation(material: Material) -> Iterator[Finding]:
    """Swapped truths, then planted and natural markers."""
    told: set[tuple[str, str]] = set()
    for finding in (*swaps(material), *_canaries(material), *_disguises(material), *_briefs(material)):
        key = (finding.remedy, finding.where.agent)
        if key not in told:
            told.add(key)
            yield finding


# -- canary


def _canaries(material: Material) -> Iterator[Finding]:
    needs = needs_of(material)
    for case in material.scenarios(3):
        for path, text in _free_texts(material, case):
            marked = replaced(dict(case.truth), path, f"{text} {CANARY}")
            scenario = dataclasses.replace(case, truth=cast("dict[str, Json]", marked))
            for player in ("random", "ask_everything", "first_legal"):
                try:
                    episode = material.play(player, scenario)
                except Exception:  # noqa: BLE001 - the world knows only its own values: a choice after all
                    break
                yield from _marked(episode, path, CANARY, needs)


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


def _marked(episode: Episode, path: str, marker: str, needs: Needs) -> Iterator[Finding]:
    quoted = False
    for move in episode.moves:
        ways = {found_in(marker, a) for _, a in _answers_before(episode, episode.cuts[move.step])}
        for line in move.seen.seen:
            way = found_in(marker, line.text) if line.kind != "error" else ""
            if way and way not in ways:
                yield _quoted(episode, move, path, way, line.text)
            elif way in ("verbatim", "normalized") and not quoted and line.kind == "answer":
                quoted = True
                yield note(f"tool {line.source} quotes truth{path}: is it meant to?", Where(agent=move.agent))
            elif way not in ("", "verbatim", "normalized") and line.kind == "answer":
                yield from _spelled(episode, move, path, way, line, needs)
    for place, record in enumerate(episode.records):
        way = found_in(marker, str(record.payload)) if isinstance(record, Sent) else ""
        told = {"", "verbatim", *(found_in(marker, a) for _, a in _answers_before(episode, place))} if way else {way}
        if isinstance(record, Sent) and way not in told:
            yield _sent(episode, record, path, way)


def _answers_before(episode: Episode, end: int) -> list[tuple[str, str]]:
    """What tools have answered up to a record: the tool, and the answer as text."""
    return [(r.tool, str(r.value)) for r in episode.records[:end] if isinstance(r, ToolAnswered) and r.ok]


def _spelled(episode: Episode, move: Move, path: str, way: str, line: Seen, needs: Needs) -> Iterator[Finding]:
    """A tool's answer that holds the truth in another spelling: to read it may be what the task is."""
    if not needs.meant({line.source}):
        say = error if needs.known else warning
        yield say(
            f"tool {line.source} tells truth{path} ({way}), {needs.why_not({line.source})}",
            "keep the truth out of what the tool answers; if it is what the tool is for, let a baseline ask it",
            Where(agent=move.agent, step=move.step, episode=episode.name, player=episode.player),
            Evidence(saw=line.text[:300], used=f"truth{path}"),
        )


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
    meant, needs = material.the_team.opening_reveals, needs_of(material)
    for player in ("random", "ask_everything"):
        for episode in material.episodes(player, material.effort.examples):
            case = episode.scenario
            salts = (case.id, str(case.seed), case.id.rsplit("-", 1)[-1])
            wanted = [(p, str(v)) for p, v in leaves(case.truth) if isinstance(v, str) and v and top(p) not in meant]
            for move in episode.moves:
                for path, value in wanted:
                    yield from _disguised(episode, move, path, value, salts, needs)


def _disguised(
    episode: Episode, move: Move, path: str, value: str, salts: tuple[str, ...], needs: Needs
) -> Iterator[Finding]:
    """One value in one observation: what no tool has answered so far, and what one has."""
    if not disguised(value, move.seen.text, salts):
        return
    for line in move.seen.seen:
        way = disguised(value, line.text, salts)
        if not way or _plainly(value, move.seen.text, way):
            continue
        if way not in {disguised(value, a, salts) for _, a in _answers_before(episode, episode.cuts[move.step])}:
            yield _quoted(episode, move, path, way, line.text)
        elif line.kind == "answer":
            yield from _spelled(episode, move, path, way, line, needs)


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
