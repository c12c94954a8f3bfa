"""Does the pay agree with what people say of the same decisions? Labels come from a sheet that the audit wrote."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from rewards.audit.correlations import correlation
from rewards.audit.decisions import Judged
from rewards.audit.findings import Evidence, Finding, Where, error, note, warning
from rewards.audit.material import Material
from rewards.audit.sheet import Label, matched

LOWEST, LOW = 0.3, 0.5
"""Correlations below which disagreement is an error, and a warning."""
FEWEST = 20
"""Labels from which a correlation can be told."""
DRAWS = 1_000
"""Bootstrap samples for the interval."""
TOLD = 3
"""Disagreements that are shown."""

Pairs = Sequence[tuple[Label, Judged]]


def human_agreement(material: Material) -> Iterator[Finding]:
    """Rank correlation of labels and pay with its interval, and the decisions on which the two differ most."""
    labels: Sequence[Label] = material.own["labels"]
    pairs = matched(material, labels)
    if len(pairs) < FEWEST:
        yield error(f"{len(pairs)} decisions are labelled, and {FEWEST} are needed", "label more rows of the sheet")
        return
    if len({x.value for x, _ in pairs}) < 2:
        yield error("every decision has the same label: nothing can be compared", "use the whole scale in labelling")
        return
    found, low, high = agreement(pairs)
    kind = "point-biserial" if len({x.value for x, _ in pairs}) == 2 else "Spearman"
    numbers = {"correlation": found, "low": low, "high": high, "labels": len(pairs)}
    said = f"{kind} correlation of labels and pay: {found:.2f}, 95% [{low:.2f}, {high:.2f}], {len(pairs)} decisions"
    if found >= LOW:
        yield note(said, evidence=Evidence(numbers=numbers))
        return
    say = error if found < LOWEST else warning
    yield say(
        f"people and the reward disagree. {said}",
        "look at the disagreements below, then at the terms that pay there",
        evidence=Evidence(numbers=numbers),
    )
    yield from (_disagreement(place, *pair) for place, pair in enumerate(disagreements(pairs)[:TOLD], 1))


def agreement(pairs: Pairs) -> tuple[float, float, float]:
    """The correlation of labels and pay, and its 95% interval by the percentile bootstrap.

    Spearman's rho; where labels have two values, the point-biserial correlation.
    """
    labels, pay = _columns(pairs)
    chance = np.random.default_rng(0)
    places = chance.integers(0, len(labels), (DRAWS, len(labels)))
    drawn = [_correlation(labels[p], pay[p]) for p in places]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return _correlation(labels, pay), float(low), float(high)


def _columns(pairs: Pairs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.array([x.value for x, _ in pairs]), np.array([d.pay for _, d in pairs])


def _correlation(labels: Any, pay: Any) -> float:
    if len(np.unique(labels)) == 2:
        return correlation(labels, pay)
    return correlation(rankdata(labels), rankdata(pay))


def disagreements(pairs: Pairs) -> list[tuple[Label, Judged]]:
    """Pairs by how far the label's rank and the pay's rank are apart, the farthest first."""
    labels, pay = _columns(pairs)
    apart = np.abs(rankdata(labels) - rankdata(pay))
    return [pairs[int(i)] for i in np.argsort(-apart, kind="stable")]


def _disagreement(place: int, label: Label, decision: Judged) -> Finding:
    return note(
        f"disagreement {place}: row {label.row} is labelled {label.value:g}, and what follows it is paid "
        f"{decision.pay:g} ({decision.where})",
        Where(agent=decision.agent),
        Evidence(
            numbers={"label": label.value, "pay": decision.pay},
            saw=decision.saw[-600:],
            used=f"did: {decision.did}",
        ),
    )
