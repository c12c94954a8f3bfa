"""Words of an observation: the tokens that text features count."""

import re
from functools import lru_cache

_PAIR = re.compile(
    r'"([^"\\]{1,60})": (?:"((?:[^"\\]|\\.){0,400})"|(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(true|false|null))'
)
_WORD = re.compile(r"[^\W\d_]+(?:[_'-][^\W\d_]+)*")
_NAME = re.compile(r"[\w.-]+")
_AUTHOR = re.compile(r"^\[[^\]]*\] ")
_BARE = re.compile(r'"((?:[^"\\]|\\.){1,400})"')

CACHED_LINES = 200_000
"""Lines whose tokens are remembered: tool answers repeat, and one line costs about 20 µs."""


@lru_cache(maxsize=CACHED_LINES)
def line_tokens(line: str) -> tuple[str, ...]:
    """The tokens of one line of an observation, each once.

    A line begins with what it comes from (a tool's name, ``case``, ``world``, ``error``), which scopes its tokens. JSON
    fields give ``scope.key=value``: texts of up to three words as they are, longer ones by their words, numbers by sign
    and magnitude (two steps a decade). Tokens with digits, such as ids and dates, are left out: they say nothing in general.
    """
    line = _AUTHOR.sub("", line)
    head = _NAME.match(line)
    scope = head.group() if head else ""
    found: dict[str, None] = {scope: None}
    rest = line[len(scope) :]
    for key, text, number, word in _PAIR.findall(rest):
        name = f"{scope}.{key}"
        if number:
            found[f"{name}={_magnitude(float(number))}"] = None
        elif word:
            found[f"{name}={word}"] = None
        else:
            _add_text(found, name, text)
    if "{" not in rest:
        for text in _BARE.findall(rest) or [rest]:
            _add_text(found, scope, text)
    return tuple(found)


def _add_text(found: dict[str, None], name: str, text: str) -> None:
    words = _WORD.findall(text)
    if len(words) <= 3 and not any(c.isdigit() for c in text):
        found[f"{name}={text}"] = None
    for word in words if len(words) > 1 else ():
        found[f"{name}:{word.lower()}"] = None


def _magnitude(number: float) -> str:
    if number == 0:
        return "0"
    digits = f"{abs(number):.1e}"
    half = "high" if float(digits[:3]) >= 3.2 else "low"
    return f"{'-' if number < 0 else ''}1e{int(digits[4:])} {half}"


def tokens(text: str) -> list[str]:
    """The tokens of a whole observation, line by line."""
    return [t for line in text.split("\n") for t in line_tokens(line)]
