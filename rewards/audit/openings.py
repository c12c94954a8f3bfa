"""First observations as numbers: words, values, lengths, places in lists, digits of ids, times."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import cast

from rewards.audit.games import Sight
from runtime.leaves import leaves
from runtime.records import Json
from runtime.types import Observation

Features = dict[str, float]
"""Named features; what is absent is 0."""
_WORDS = re.compile(r"\w+")
_DIGITS = re.compile(r"\d+")
_INDEX = re.compile(r"\[\d+\]")
MOST_PLACES = 64
"""Places of an array whose fractions are looked at digit by digit."""
MOST_WORDS = 80
"""Words of one text that become features."""


def of_observation(seen: Observation) -> Features:
    """Everything a text shows, and the mask."""
    found: Features = {f"mask[{i}]": float(ok) for i, ok in enumerate(seen.mask)}
    found["text length"] = len(seen.text)
    found["lines"] = len(seen.seen)
    for line in seen.seen:
        for name, value in _of_json(line.data, line.kind):
            found[name] = value
    return found


def of_sight(seen: Sight) -> Features:
    """Every place of the array, and the mask."""
    found: Features = {f"array[{i}]": float(v) for i, v in enumerate(seen.array)}
    for place, value in enumerate(seen.array[:MOST_PLACES]):
        for digits in range(4):
            found[f"array[{place}] behind {digits} digits of its fraction"] = float(value) * 10**digits % 1.0
    return found | {f"mask[{i}]": float(ok) for i, ok in enumerate(seen.mask or ())}


def _of_json(data: Json, name: str) -> Iterator[tuple[str, float]]:
    yield from _sizes(data, name)
    for path, leaf in leaves(data, name):
        anywhere = _INDEX.sub("[]", path)
        if isinstance(leaf, bool) or leaf is None:
            yield f"{path} is {leaf}", 1.0
        elif isinstance(leaf, int | float):
            yield from _of_number(path, float(leaf))
        else:
            yield from _of_text(path, anywhere, str(leaf))


def _sizes(data: Json, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(data, dict):
        held = cast("Mapping[str, Json]", data)
        yield f"{name} has {len(held)} keys", 1.0
        for key, inner in held.items():
            yield f"{name}.{key} is there", 1.0
            yield from _sizes(inner, f"{name}.{key}")
    elif isinstance(data, list | tuple):
        items = cast("Sequence[Json]", data)
        yield f"length of {name}", float(len(items))
        for place, inner in enumerate(items):
            yield from _sizes(inner, f"{name}[{place}]")


def _of_number(path: str, value: float) -> Iterator[tuple[str, float]]:
    yield f"{path} as a number", value
    if value == int(value) and abs(value) < 1e15:
        yield f"{path} is {int(value)}", 1.0
        for base in (2, 3, 4, 5, 10):
            yield f"{path} modulo {base} is {int(value) % base}", 1.0
    else:
        yield f"{path} behind the point", value - int(value) if abs(value) < 1e15 else 0.0


def _of_text(path: str, anywhere: str, text: str) -> Iterator[tuple[str, float]]:
    yield f"{path} is {text[:60]!r}", 1.0
    yield f"length of {path}", float(len(text))
    yield f"{path} begins with {text[:1]!r}", 1.0
    yield f"{path} ends with {text[-1:]!r}", 1.0
    yield f"capitals in {path}", float(sum(c.isupper() for c in text))
    yield f"spaces in {path}", float(sum(c.isspace() for c in text))
    yield f"signs in {path}", float(sum(not c.isalnum() and not c.isspace() for c in text))
    yield f"other characters in {path}", float(sum(ord(c) > 126 for c in text))
    for word in _WORDS.findall(text)[:MOST_WORDS]:
        yield f"{anywhere} says {word}", 1.0
    for place, digits in enumerate(_DIGITS.findall(text)[:6]):
        yield from _of_number(f"number {place} in {path}", float(digits[:15]))
    yield from _of_time(path, text)


def _of_time(path: str, text: str) -> Iterator[tuple[str, float]]:
    if not 8 <= len(text) <= 35 or not text[:4].isdigit():
        return
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return
    yield f"{path} as a time", when.toordinal() * 86_400.0 + when.hour * 3_600 + when.minute * 60 + when.second
    yield f"weekday of {path} is {when.weekday()}", 1.0
    yield f"hour of {path}", float(when.hour)
