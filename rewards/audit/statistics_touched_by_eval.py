"""Held out is held out: an evaluation may read statistics and must not change them."""

import json
from collections.abc import Iterator
from typing import Any

from rewards.audit.findings import Evidence, Finding, Where, error
from rewards.audit.material import Material
from runtime.leaves import leaves


def statistics_touched_by_eval(material: Material) -> Iterator[Finding]:
    """Every statistic before and after an evaluation."""
    watched = material.evaluating
    assert watched is not None
    before = {name: _frozen(take()) for name, take in watched.statistics.items()}
    watched.evaluate()
    for name, take in watched.statistics.items():
        after = _frozen(take())
        if after != before[name]:
            place, old, new = _difference(before[name], after)
            yield error(
                f"an evaluation changed the statistics {name!r} at {place or 'the top'}",
                "let evaluation and serving transform only: update() is for training episodes",
                Where(),
                Evidence(saw=f"before: {old}", used=f"after: {new}"),
            )


def _frozen(state: Any) -> str:
    """A state as text, so that what is changed in place later does not change it too."""
    return json.dumps(state, sort_keys=True, default=repr)


def _difference(before: str, after: str) -> tuple[str, str, str]:
    old, new = dict(leaves(json.loads(before))), dict(leaves(json.loads(after)))
    places = [p for p in {**old, **new} if old.get(p) != new.get(p)]
    place = places[0] if places else ""
    return place, str(old.get(place)), str(new.get(place))
