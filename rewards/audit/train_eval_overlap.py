"""Is a held-out case trained on: the same one, the same stream of chance, or nearly the same text?

Cases that are drawn from few possibilities repeat each other by chance, within training and under any other seed too:
what counts is that pairs across the splits agree more often than those do, that the splits are the same in order, or
that both are drawn from one list (``pools``).
"""

import json
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from rewards.audit.findings import Evidence, Finding, Where, error, note
from rewards.audit.markers import normalized
from rewards.audit.material import Material
from rewards.audit.pools import LONG, TINY, pool, shifted
from rewards.audit.similar import near_pairs
from runtime.types import Scenario

_REMEDY = "give evaluation cases of its own: another seed and split for a generator, disjoint files, or `held_out`"
LISTED = 2_000
"""Cases of a file that are compared at most."""
SURE = 4.0
"""Standard deviations beyond what pairs within training show."""
DISTINCT = 4
"""Different cases that two splits must share in their order: fewer could be chance."""
CONTROL_SEED = 2**31 - 19
"""A generator's seed that no experiment is likely to use."""

Pair = tuple[Scenario, Scenario]
"""A held-out case and the training case that it repeats."""


def train_eval_overlap(material: Material) -> Iterator[Finding]:
    """Cases of the same name or chance, the same contents, and near-duplicates of what is visible."""
    train, held_out = (_cases(material, split) for split in ("train", "eval"))
    listed = bool({"train", "eval"} & material.listed)
    same = None if listed else _case_by_case(train, held_out)
    if same is not None:
        yield same
        return
    if not listed:
        later = _further_on(material, len(train))
        if later is not None:
            yield later
            return
        drawn = _from_one_pool(train, held_out)
        if drawn is not None:
            yield drawn
            return
    control = None if listed else _control(material, train)
    for look in (_same_stream, _same_content, _alike):
        found = look(train, held_out, listed)
        by_chance = None if control is None or found is None else look(control, held_out, listed)
        if found is not None and _more_than(found, by_chance):
            yield found
            return


def _further_on(material: Material, window: int) -> Finding | None:
    """The held-out cases are training cases of another place in the stream, one by one, or the other way round."""
    train, held_out = material.sources["train"], material.sources["eval"]
    ends = material.counts.get("train"), material.counts.get("eval")
    for ahead, behind, both, turned in (
        (held_out, train, (ends[1], ends[0]), False),
        (train, held_out, ends, True),
    ):
        for shift, pairs in shifted(ahead, behind, _content, window, both):
            found = [(b, a) for a, b in pairs] if turned else pairs
            if len({_content(t) for _, t in found}) >= DISTINCT and all(_content(h) == _content(t) for h, t in found):
                what = "come later in training" if not turned else "are reached later in evaluation"
                return _told(f"are training cases, {shift} places apart in one stream; they {what}", found, len(found))
    return None


def _from_one_pool(train: Sequence[Scenario], held_out: Sequence[Scenario]) -> Finding | None:
    """Both splits are drawn from one list, or from a space so small that they cannot but meet."""
    both = [*train, *held_out]
    contents = [_content(s) for s in both]
    known = dict(zip(contents, train, strict=False))
    hits = [(s, known[c]) for s in held_out if (c := _content(s)) in known]
    found = pool(both, contents)
    if len(hits) < DISTINCT or len({_content(h) for h, _ in hits}) < min(DISTINCT, len(set(contents))):
        return None
    told = f"are training cases: all are drawn from about {found.size:.0f} different ones"
    if not found.telling:
        return _few_there_are(told, hits, len(held_out)) if found.size <= TINY else None
    what = f"{told}, as visible{found.telling} shows, which would hardly come up twice by chance"
    finding = _told(what, hits, len(held_out))
    return finding if found.size > TINY else replace(finding, severity="warning")


def _few_there_are(told: str, hits: Sequence[Pair], of: int) -> Finding:
    return note(
        f"{len(hits)} of {of} held-out cases {told}, and there seem to be no more: evaluation shows how well the team "
        "plays cases that it was trained on",
        Where(episode=hits[0][0].id),
        Evidence(numbers={"held out": of, "overlapping": len(hits)}),
    )


def _control(material: Material, train: Sequence[Scenario]) -> list[Scenario] | None:
    """As many training cases of a seed that nobody uses: what they share with held-out cases, they share by chance.

    None where there can be none: no generator, or one that makes nothing of the seed.
    """
    generate = material.team.generate if material.team else None
    if generate is None:
        return None
    made = [generate("train", CONTROL_SEED, k) for k in range(len(train))]
    return None if _case_by_case(train, made) else made


def _more_than(found: Finding, by_chance: Finding | None) -> bool:
    chance = by_chance.evidence.numbers["overlapping"] if by_chance is not None else 0.0
    return _surprising(int(found.evidence.numbers["overlapping"]), chance)


def _case_by_case(train: Sequence[Scenario], held_out: Sequence[Scenario]) -> Finding | None:
    """The k-th held-out case is the k-th training case, throughout, though cases differ: the seed does nothing."""
    pairs = list(zip(held_out, train, strict=False))
    if len({_content(t) for _, t in pairs}) < DISTINCT or any(_content(h) != _content(t) for h, t in pairs):
        return None
    return _told("are training cases, one by one in their order: the generator makes nothing of seed and split", pairs,
                 len(held_out))  # fmt: skip


def _cases(material: Material, split: str) -> list[Scenario]:
    most = LISTED if split in material.listed else material.effort.openings
    return list(material.scenarios(most, split))


def _content(case: Scenario) -> str:
    return normalized(json.dumps([case.visible, case.truth], sort_keys=True, default=str))


def _visible(case: Scenario) -> str:
    return json.dumps(case.visible, sort_keys=True, default=str)


def _pairs(count: int) -> int:
    return max(1, count * (count - 1) // 2)


def _repeats(texts: Sequence[Hashable]) -> int:
    """Pairs within that are equal."""
    return sum(_pairs(n) for n in Counter(texts).values() if n > 1)


def _same_stream(train: Sequence[Scenario], held_out: Sequence[Scenario], listed: bool) -> Finding | None:
    """Cases of one id, or of one seed of chance, that also say the same."""
    rate = _repeats([_content(s) for s in train]) / _pairs(len(train))
    for what, field in (("name", "id"), ("chance", "seed")):
        key = attrgetter(field)
        known: dict[Hashable, Scenario] = {key(s): s for s in train}
        if len(known) < len(train) // 2:
            continue
        pairs = [(s, known[key(s)]) for s in held_out if key(s) in known]
        hits = [p for p in pairs if _content(p[0]) == _content(p[1])]
        if _surprising(len(hits), len(pairs) * rate):
            return _told(f"have the {what} of training cases and say the same", hits, len(held_out))
    return None


def _surprising(hits: int, expected: float) -> bool:
    return hits > expected + SURE * math.sqrt(expected + 1)


def _same_content(train: Sequence[Scenario], held_out: Sequence[Scenario], listed: bool) -> Finding | None:
    contents = [_content(s) for s in train]
    known = dict(zip(contents, train, strict=True))
    counts, own = Counter(contents), _repeats(contents)
    hits = [(s, known[c]) for s in held_out if (c := _content(s)) in known]
    pairs = sum(counts[_content(s)] for s, _ in hits)
    if hits and ((listed and not own) or _more(pairs, len(held_out) * len(train), own, _pairs(len(train)))):
        return _told("are training cases", hits, len(held_out))
    return None


def _alike(train: Sequence[Scenario], held_out: Sequence[Scenario], listed: bool) -> Finding | None:
    texts, others = [_visible(s) for s in held_out], [_visible(s) for s in train]
    near = [p for p in near_pairs(texts, others) if len(normalized(texts[p[1]])) >= LONG]
    own = near_pairs(others) if near else []
    few = listed and not own and len({place for _, place, _ in near}) > 1
    if not near or not (few or _more(len(near), len(texts) * len(others), len(own), _pairs(len(others)))):
        return None
    best: dict[int, tuple[float, int]] = {}
    for similar, place, other in near:
        best[place] = max(best.get(place, (0.0, 0)), (similar, other))
    hits = [(held_out[place], train[other]) for place, (_, other) in sorted(best.items(), key=lambda i: -i[1][0])]
    return _told(f"are nearly training cases (similarity up to {max(near)[0]:.2f})", hits, len(held_out))


def _more(hits: int, of: int, own: int, own_of: int) -> bool:
    """Whether pairs across agree more often than pairs within could make one expect."""
    expected = (own + 3 + 3 * math.sqrt(own)) * of / own_of
    return _surprising(hits, expected)


def _told(what: str, hits: Sequence[Pair], of: int) -> Finding:
    case, known = hits[0]
    return error(
        f"{len(hits)} of {of} held-out cases {what}",
        _REMEDY,
        Where(episode=case.id),
        Evidence(
            numbers={"held out": of, "overlapping": len(hits), "share": len(hits) / of},
            saw=f"held out {case.id}: {_visible(case)[:240]}",
            used=f"training {known.id}: {_visible(known)[:240]}",
        ),
    )
