"""Near-duplicates among texts: MinHash (Broder 1997) with banding, then the exact Jaccard similarity."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rewards.audit.markers import normalized
from runtime.seams import digest

HASHES, BANDS = 64, 16
"""Values in a signature, and bands they are compared in: texts of similarity 0.8 meet 999 times in 1000."""
NEAR = 0.8
"""Jaccard similarity of shingles from which two texts count as nearly the same."""
MET = 50
"""Candidates of one text that are compared: where texts follow a template, all of them meet."""
_PRIME = (1 << 31) - 1
_LETTERS = 5
"""Characters in a shingle."""


def shingles(text: str) -> frozenset[str]:
    """Every run of a few letters or digits; spacing, case and punctuation do not count."""
    plain = normalized(text)
    return frozenset(plain[i : i + _LETTERS] for i in range(max(1, len(plain) - _LETTERS + 1)))


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard similarity, 0 to 1."""
    return len(one & other) / (len(one | other) or 1)


def near_pairs(texts: Sequence[str], among: Sequence[str] | None = None) -> list[tuple[float, int, int]]:
    """Pairs of a text and one among the others (or, without others, a later one) that are nearly the same.

    Returns ``(similarity, place, place among the others)``; of each text at most ``MET`` others are looked at.
    """
    sets = [shingles(t) for t in texts]
    others = sets if among is None else [shingles(t) for t in among]
    signatures = [_signature(s) for s in sets]
    buckets: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for place, signature in enumerate(signatures if among is None else map(_signature, others)):
        for key in _bands(signature):
            buckets[key].append(place)
    found: list[tuple[float, int, int]] = []
    for place, signature in enumerate(signatures):
        met = {o for key in _bands(signature) for o in buckets.get(key, ()) if among is not None or o > place}
        pairs = ((similarity(sets[place], others[o]), place, o) for o in sorted(met)[:MET])
        found += [p for p in pairs if p[0] >= NEAR]
    return found


_rng = np.random.default_rng(20_240_229)
_FACTORS: NDArray[np.int64] = _rng.integers(1, _PRIME, HASHES)
_SHIFTS: NDArray[np.int64] = _rng.integers(0, _PRIME, HASHES)


def _signature(found: frozenset[str]) -> NDArray[np.int64]:
    values = np.array([digest(s) % _PRIME for s in found], np.int64)
    return ((values[:, None] * _FACTORS + _SHIFTS) % _PRIME).min(axis=0)


def _bands(signature: NDArray[np.int64]) -> list[tuple[int, bytes]]:
    return [(i, part.tobytes()) for i, part in enumerate(np.split(signature, BANDS))]
