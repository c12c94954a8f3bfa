"""Can the hidden truth be learnt from the first observation alone, beyond what the team declares its opening to reveal?

A classifier learns from some cases' openings and must tell other cases' truths. It has to succeed twice, in
cross-validation and on fresh cases, each time beyond what permuted labels give: chance does not pass both.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewards.audit.findings import Evidence, Finding, Where, error, note
from rewards.audit.markers import top
from rewards.audit.material import Material
from rewards.audit.openings import Features, of_observation, of_sight
from runtime.leaves import leaves
from runtime.records import Json
from runtime.types import AgentId, Scenario

SURE = 4.0
"""Standard deviations above permuted labels, in both tests: by chance once in 10^9."""
PERMUTATIONS = 200
FEWEST, RAREST, MOST_CLASSES = 60, 8, 20
"""Cases needed, cases of a class needed, and classes up to which a truth can be learnt."""
_KEPT = 80
"""Features that the classifier gets, those that tell most of the labels it learns from."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Openings:
    """What each agent sees first in some cases, and the truths behind them."""

    features: dict[AgentId, list[Features]]
    truths: list[dict[str, Json]]


def truth_predictable_at_start(material: Material) -> Iterator[Finding]:
    """Each hidden value by each agent's opening; agents that see the same are looked at once."""
    openings = _of_team(material) if material.has("team") else _of_games(material)
    if len(openings.truths) < FEWEST:
        yield note(f"there are {len(openings.truths)} cases: too few to learn from (at least {FEWEST})")
        return
    targets = _targets(openings.truths)
    if not targets:
        yield note("no hidden value is one of a few, or a number: there is nothing to predict")
    looked_at: set[bytes] = set()
    for agent, rows in openings.features.items():
        x, names = _matrix(rows)
        if names and x.tobytes() not in looked_at:
            looked_at.add(x.tobytes())
            for path, labels in targets.items():
                yield from _predicted(x, names, labels, Where(agent=agent), path)


# -- openings and truths


def _of_team(material: Material) -> _Openings:
    cases = list(material.scenarios(2 * material.effort.openings))
    features: dict[AgentId, list[Features]] = {a: [] for a in material.agents}
    for case in cases:
        table = material.opens(case, material.seed)
        for agent in material.agents:
            features[agent].append(of_observation(table.observe(agent)))
    return _Openings(features, [_hidden(material, case) for case in cases])


def _hidden(material: Material, case: Scenario) -> dict[str, Json]:
    meant = material.the_team.opening_reveals
    return {p: v for p, v in leaves(case.truth) if top(p) not in meant}


def _of_games(material: Material) -> _Openings:
    features: dict[AgentId, list[Features]] = {a: [] for a in material.agents}
    truths: list[dict[str, Json]] = []
    if not material.opens_game(0).truth:
        return _Openings(features, [{}] * FEWEST)
    for seed in range(2 * material.effort.openings):
        table = material.opens_game(seed)
        truths.append(dict(leaves(table.truth)))
        for agent in table.to_act:
            features[agent].append(of_sight(table.observe(agent)))
    return _Openings({a: rows for a, rows in features.items() if len(rows) == len(truths)}, truths)


def _targets(truths: Sequence[dict[str, Json]]) -> dict[str, Ints]:
    """Labels by path, for the values that can be learnt."""
    found: dict[str, Ints] = {}
    for path in dict.fromkeys(p for truth in truths for p in truth):
        labels = _labels([truth.get(path) for truth in truths])
        if labels is not None:
            found[path] = labels
    return found


def _labels(values: Sequence[Json]) -> Ints | None:
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values) and len(set(values)) > MOST_CLASSES:
        edges = np.quantile(np.asarray(values, np.float64), [1 / 3, 2 / 3])
        return np.digitize(np.asarray(values, np.float64), edges).astype(np.int64)
    counts = Counter(map(str, values))
    kept = [v for v, n in counts.most_common(MOST_CLASSES) if n >= RAREST]
    if len(kept) < 1 or sum(counts[v] for v in kept) < len(values) // 2:
        return None
    labels = np.asarray([kept.index(str(v)) if str(v) in kept else len(kept) for v in values], np.int64)
    return labels if min(np.bincount(labels).max(), len(labels)) <= len(labels) - RAREST else None


# -- learning


def _predicted(x: Floats, names: Sequence[str], labels: Ints, where: Where, path: str) -> Iterator[Finding]:
    half = len(x) // 2
    sure_then, _ = _surely(_cross_validated(x[:half], labels[:half]), labels[:half])
    if sure_then <= SURE:
        return
    guesses, best = _learnt(x[:half], labels[:half], x[half:])
    sure, p = _surely(guesses, labels[half:])
    if sure <= SURE:
        return
    hit = float((guesses == labels[half:]).mean())
    prior = float(np.bincount(labels[half:]).max() / (len(labels) - half))
    yield error(
        f"the first observation gives truth{path} away: a classifier is right in {hit:.0%} of unseen cases; "
        f"always the commonest is right in {prior:.0%}",
        "draw what is shown independently of the truth, or name the truth in Team.opening_reveals",
        where,
        Evidence(
            numbers={"accuracy": hit, "prior": prior, "standard deviations": sure, "p": p, "cases": len(labels) - half},
            saw=f"what tells most: {names[best]}",
            used=f"truth{path}",
        ),
    )


def _matrix(rows: Sequence[Features]) -> tuple[Floats, list[str]]:
    """``(N, F)``: features that vary, and that are no single case's own."""
    counts = Counter(name for row in rows for name in row)
    names = [n for n, k in counts.items() if k >= RAREST]
    place = {n: i for i, n in enumerate(names)}
    x = np.zeros((len(rows), len(names)))
    for i, row in enumerate(rows):
        for name, value in row.items():
            if name in place:
                x[i, place[name]] = value
    half = len(rows) // 2
    varies = x[:half].std(axis=0) > 1e-12 if names else np.zeros(0, bool)
    return x[:, varies], [n for n, v in zip(names, varies, strict=True) if v]


def _cross_validated(x: Floats, labels: Ints, folds: int = 3) -> Ints:
    """Each case's label as told by a classifier that has not seen it."""
    guesses, parts = np.zeros_like(labels), np.arange(len(labels)) % folds
    for fold in range(folds):
        guesses[parts == fold] = _learnt(x[parts != fold], labels[parts != fold], x[parts == fold])[0]
    return guesses


def _learnt(x: Floats, labels: Ints, unseen: Floats) -> tuple[Ints, int]:
    """Labels for unseen cases, and the place of the feature that told most."""
    from sklearn.ensemble import ExtraTreesClassifier

    chosen = _telling(x, labels)
    forest: Any = ExtraTreesClassifier  # its stubs know no share of features
    model: Any = forest(20, max_depth=8, min_samples_leaf=2, max_features=0.5, class_weight="balanced", random_state=0)
    model.fit(x[:, chosen], labels)
    guesses: Ints = model.predict(unseen[:, chosen])
    return guesses, int(chosen[int(np.argmax(model.feature_importances_))])


def _telling(x: Floats, labels: Ints) -> Ints:
    """The features that differ most between the labels: the F statistic of a one-way analysis of variance."""
    centred = x - x.mean(axis=0)
    total = (centred**2).sum(axis=0) + 1e-12
    between = np.zeros(x.shape[1])
    for label in np.unique(labels):
        group = centred[labels == label]
        between += len(group) * group.mean(axis=0) ** 2
    return np.argsort(-(between / total), kind="stable")[:_KEPT]


def _surely(guesses: Ints, labels: Ints) -> tuple[float, float]:
    """How far above permuted labels the guesses are, in standard deviations, and the share of permutations as good."""
    weights = 1.0 / np.bincount(labels, minlength=int(max(labels.max(), guesses.max())) + 1).clip(1)

    rng = np.random.default_rng(0)
    truths = np.stack([labels, *(rng.permutation(labels) for _ in range(PERMUTATIONS))])
    scores = (weights[truths] * (truths == guesses)).sum(axis=1)
    found, permuted = float(scores[0]), scores[1:]
    spread = float(permuted.std())
    if spread == 0.0 or math.isnan(spread):
        return 0.0, 1.0
    return (found - float(permuted.mean())) / spread, float((1 + (permuted >= found).sum()) / (1 + PERMUTATIONS))
