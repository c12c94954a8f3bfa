"""First observations as numbers: words, values, lengths, places in lists, letters, remainders, times."""

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
BASES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16)
"""Numbers that whole numbers are divided by: what remains may tell."""
MOST_LETTERS, MOST_KEYS = 24, 12
"""Letters of a text, and keys of an object, up to which each place is a feature."""
MOST_COUNTED = 12
"""Letters of a text up to which their numbers are divided, too."""
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
        for place, (key, inner) in enumerate(held.items()):
            yield f"{name}.{key} is there", 1.0
            if place < MOST_KEYS:
                yield f"key {place} of {name} is {key}", 1.0
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
        yield from _remainders(path, int(value))
        yield from _remainders(f"sum of the digits of {path}", sum(map(int, str(abs(int(value))))))
    else:
        yield f"{path} behind the point", value - int(value) if abs(value) < 1e15 else 0.0


def _remainders(what: str, value: int) -> Iterator[tuple[str, float]]:
    for base in BASES:
        yield f"{what} modulo {base} is {value % base}", 1.0


def _letters(path: str, text: str) -> Iterator[tuple[str, float]]:
    """Of a short text, each letter in its place, from the front and from the back."""
    if len(text) > MOST_LETTERS:
        return
    for place, letter in enumerate(text):
        yield f"letter {place} of {path} is {letter!r}", 1.0
        yield f"letter {place - len(text)} of {path} is {letter!r}", 1.0
        yield f"letter {place} of {path} as a number", float(ord(letter))
        if len(text) <= MOST_COUNTED:
            yield from _remainders(f"letter {place} of {path}", ord(letter))


def _of_text(path: str, anywhere: str, text: str) -> Iterator[tuple[str, float]]:
    yield f"{path} is {text[:60]!r}", 1.0
    yield f"length of {path}", float(len(text))
    yield f"{path} begins with {text[:1]!r}", 1.0
    yield f"{path} ends with {text[-1:]!r}", 1.0
    yield f"capitals in {path}", float(sum(c.isupper() for c in text))
    yield f"spaces in {path}", float(sum(c.isspace() for c in text))
    yield f"signs in {path}", float(sum(not c.isalnum() and not c.isspace() for c in text))
    yield f"other characters in {path}", float(sum(ord(c) > 126 for c in text))
    yield from _remainders(f"length of {path}", len(text))
    yield from _letters(path, text)
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
