"""Sampled episodes as the page's script draws them: bounded, and every text in it once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from runtime.records import Rewarded
from telemetry.episode import Answer, Decision, EpisodeStory, Option, short_json
from telemetry.records_file import origin_of
from telemetry.report.reading import Account, Statistics

EPISODES = 200
"""Episodes on a page: as many as a run keeps."""
CHARACTERS = 6_000_000
"""Of all texts on a page together: a file that size opens at once."""
TEXT = 8_000
"""Characters of one text; a longer one is cut, which is said in its place."""
LINES = 400
"""Lines of one observation, the latest."""
DECISIONS = 400
"""Decisions of one episode, the first."""
OPTIONS = 24
"""Calls shown beside the one that was chosen, the likeliest first."""


@dataclass(slots=True)
class Texts:
    """Every text once, by its place: what agents see repeats itself."""

    places: dict[str, int] = field(default_factory=dict[str, int])
    characters: int = 0
    cut: int = 0
    """Texts that were too long."""

    def place(self, text: str) -> int:
        """Where the text stands, cut where it is too long."""
        if len(text) > TEXT:
            self.cut += 1
            text = f"{text[:TEXT]} … {len(text) - TEXT:,} characters left out"
        known = self.places.get(text)
        if known is None:
            known = self.places[text] = len(self.places)
            self.characters += len(text)
        return known


def timeline(account: Account) -> dict[str, Any]:
    """The newest episodes of a run, as many as there is room for; ``notes`` says what was left out."""
    return drawn(account.episodes(), account.run.agents, account.statistics, len(account.run.sampled()))


def drawn(
    episodes: Iterable[tuple[int, EpisodeStory]], agents: Sequence[str], statistics: Statistics | None, there: int
) -> dict[str, Any]:
    """The same of any episodes, of which so many are ``there``."""
    texts, names, shown = Texts(), list(agents), list[dict[str, Any]]()
    shortened = 0
    for number, episode in episodes:
        if len(shown) >= EPISODES or texts.characters > CHARACTERS:
            break
        names += dict.fromkeys(d.agent for d in episode.decisions if d.agent not in names)
        shortened += len(episode.decisions) > DECISIONS
        shown.append(_episode(number, episode, names, texts, statistics))
    return {
        "agents": names,
        "texts": list(texts.places),
        "episodes": shown,
        "notes": _notes(there - len(shown), texts.cut, shortened),
    }


def _notes(left_out: int, cut: int, shortened: int) -> list[str]:
    notes: list[str] = []
    if left_out > 0:
        notes.append(f"{left_out:,} older episodes are not on this page; they are in records/.")
    if cut:
        notes.append(f"{cut:,} texts of more than {TEXT:,} characters are cut.")
    if shortened:
        notes.append(f"{shortened:,} episodes have more than {DECISIONS} decisions: the rest is in records/.")
    return notes


def _episode(
    number: int, episode: EpisodeStory, agents: Sequence[str], texts: Texts, statistics: Statistics | None
) -> dict[str, Any]:
    opened, ended = episode.opened, episode.ended
    kept = episode.decisions[:DECISIONS]
    return {
        "id": f"{number:06d}",
        "cid": opened.correlation_id if opened else "",
        "scenario": opened.scenario if opened else "unknown scenario",
        "from": origin_of(number),
        "end": episode.end,
        "outcome": texts.place(short_json(dict(ended.outcome))) if ended else None,
        "paid": _rounded(sum(d.paid for d in episode.decisions)),
        "left": len(episode.decisions) - len(kept),
        "began": min((d.began for d in kept), default=0.0),
        "decisions": [_decision(d, agents, texts, statistics) for d in kept],
    }


def _decision(decision: Decision, agents: Sequence[str], texts: Texts, statistics: Statistics | None) -> dict[str, Any]:
    saw = decision.observation.splitlines()
    z = statistics.standardized(decision.agent, decision.paid) if statistics and not decision.missing else None
    return {
        "agent": agents.index(decision.agent),
        "turn": decision.turn,
        "at": decision.began,
        "ms": _rounded(1000 * decision.seconds),
        "saw": [texts.place(line) for line in saw[-LINES:]],
        "unseen": max(0, len(saw) - LINES),
        "call": texts.place(decision.call or "nothing yet"),
        "p": _rounded(decision.probability),
        **_options(decision.options, texts),
        "got": [_answer(a, texts) for a in decision.answers],
        "sent": [texts.place(message) for message in decision.sent],
        "pay": [_reward(r, texts, statistics) for r in decision.rewards],
        "paid": _rounded(decision.paid),
        "z": _rounded(z),
        "usd": _rounded(decision.cost_usd),
        "tokens": [decision.tokens_in, decision.tokens_out],
        "models": [texts.place(model) for model in decision.models],
        "failed": decision.failed,
        "missing": decision.missing,
        "degraded": decision.degraded,
    }


def _options(options: Sequence[Option], texts: Texts) -> dict[str, Any]:
    """The likeliest calls: text, probability, whether legal, whether chosen; and how many are left out."""
    ranked = sorted(options, key=lambda o: (not o.chosen, -(o.probability or 0.0), not o.legal))
    kept = sorted(ranked[: OPTIONS + 1], key=lambda o: -(o.probability or 0.0))
    listed = [[texts.place(o.call), _rounded(o.probability), o.legal, o.chosen] for o in kept]
    return {"options": listed, "others": len(options) - len(kept)}


def _answer(answer: Answer, texts: Texts) -> list[Any]:
    return [
        texts.place(answer.text),
        answer.ok,
        texts.place(answer.before_coercion) if answer.before_coercion else None,
    ]


def _reward(rewarded: Rewarded, texts: Texts, statistics: Statistics | None) -> list[Any]:
    """Term, value, standardized value, why it is missing, and whether everybody is paid it."""
    z = rewarded.standardized
    if z is None and statistics and rewarded.value is not None:
        z = statistics.scaled(rewarded.agent, rewarded.value)
    why = texts.place(rewarded.missing or "no reason given") if rewarded.value is None else None
    term = texts.place(rewarded.term)
    return [term, _rounded(rewarded.value), _rounded(z), why, rewarded.scope == "team"]


def _rounded(value: float | None) -> float | None:
    """Six significant digits: what a reader can use."""
    return float(f"{value:.6g}") if value is not None and isfinite(value) else None
