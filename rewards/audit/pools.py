"""How many different cases a generator has, and whether two splits meet further on in their streams.

Cases that are drawn from a few possibilities repeat each other, and no split can help it: a bandit of ten arms has ten
cases. A data set that is drawn from is told apart by what a case holds: a text, or a number out of many, that would
hardly come up twice by chance, and comes up with all that it came up with before.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rewards.audit.markers import normalized
from runtime.leaves import leaves
from runtime.records import Json
from runtime.types import Scenario

LONG = 24
"""Letters and digits from which a text is a case of its own, and no choice among a few."""
SPARSE = 10
"""How many times wider than the different numbers in it a range must be, for a number to be one out of many."""
FEWEST = 12
"""Different values from which can be said how they lie in their range."""
TINY = 100
"""Different cases up to which a space is so small that training meets all of it."""
PROBED = 8
"""Cases in a row that are compared before all are."""
MEETINGS = 20
"""Places at which two streams meet by chance, after which no shift is looked for: cases repeat each other anyway."""
STRIDES = 1_000
"""Further cases of a stream that are looked at, one in each window."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What cases repeat each other show of all that there are."""

    size: float
    """Different cases, as told by how often two are equal; infinite where none are."""
    telling: str
    """The path of a value that would hardly come up twice by chance; empty where there is none."""


def pool(cases: Sequence[Scenario], contents: Sequence[str]) -> Pool:
    """The pool that these cases are drawn from."""
    pairs = len(cases) * (len(cases) - 1) / 2
    equal = sum(n * (n - 1) / 2 for n in Counter(contents).values())
    values: dict[str, list[Json]] = {}
    for case in cases:
        for path, value in leaves(dict(case.visible)):
            values.setdefault(path, []).append(value)
    return Pool(pairs / equal if equal else math.inf, next((p for p, v in values.items() if _tells(v)), ""))


def _tells(values: Sequence[Json]) -> bool:
    """Whether values come from a space far larger than what is seen of it."""
    texts = {v for v in values if isinstance(v, str)}
    if len(texts) >= 2 and min(len(normalized(t)) for t in texts) >= LONG:
        return True
    numbers = {float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)}
    numbers |= {float(d) for t in texts if (d := "".join(c for c in t if c.isdigit())) and len(d) <= 15}
    finite = sorted(n for n in numbers if math.isfinite(n))
    if len(finite) < FEWEST:
        return False
    # the middle half, so that one number far away makes no range
    middle = finite[len(finite) // 4 : -len(finite) // 4 or None]
    whole = all(n.is_integer() for n in finite)
    return not whole or middle[-1] - middle[0] > SPARSE * len(middle)


def shifted(
    ahead: Callable[[int], Scenario],
    behind: Callable[[int], Scenario],
    content: Callable[[Scenario], str],
    window: int,
    ends: tuple[int | None, int | None],
) -> Iterator[tuple[int, list[tuple[Scenario, Scenario]]]]:
    """Shifts at which the first cases of one stream are those of the other, and the pairs.

    Of any ``window`` consecutive cases one in the window's stride is met, so one case a window is enough to look at.

    Args:
        ahead: the stream whose first cases are looked for.
        behind: the stream that comes to them later.
        content: what a case says.
        window: how many first cases.
        ends: how many cases both streams have.
    """
    first = [ahead(k) for k in range(window if ends[0] is None else min(window, ends[0]))]
    known = {content(case): place for place, case in enumerate(first)}
    last = STRIDES * len(first) if ends[1] is None else min(ends[1], STRIDES * len(first))
    met = 0
    for index in range(len(first), last, max(1, len(first))):
        place = known.get(content(behind(index)))
        if place is None:
            continue
        met += 1
        shift = index - place
        if ends[1] is not None and shift + len(first) > ends[1]:
            continue
        if all(content(behind(shift + k)) == content(first[k]) for k in range(min(PROBED, len(first)))):
            yield shift, [(case, behind(shift + k)) for k, case in enumerate(first)]
        if met >= MEETINGS:
            return
