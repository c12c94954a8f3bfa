"""Words of an observation: the tokens that text features count."""

import math
import re
from functools import lru_cache

_PAIR = re.compile(
    r'"([^"\\]{1,60})": (?:"((?:[^"\\]|\\.){0,400})"|(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(true|false|null))'
)
_WORD = re.compile(r"[^\W\d_]+(?:[_'-][^\W\d_]+)*")
_NAME = re.compile(r"[\w.-]+")
_AUTHOR = re.compile(r"^\[[^\]]*\] ")
_BARE = re.compile(r'"((?:[^"\\]|\\.){1,400})"')
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.-])")

CACHED_LINES = 4_096
"""Lines whose tokens are remembered: those of the open episodes come back at every turn; older ones hardly ever do."""


@lru_cache(maxsize=CACHED_LINES)
def line_tokens(line: str) -> tuple[str, ...]:
    """The tokens of one line of an observation, each once.

    A line begins with what it comes from (a tool's name, ``case``, ``world``, ``error``), which scopes its tokens. JSON
    fields give ``scope.key=value``: texts of up to three words as they are, longer ones by their words, numbers by sign
    and magnitude (two steps a decade). A value that is no object gives ``scope=value``. Tokens with digits, such as ids
    and dates, are left out: they say nothing in general.
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
    _add_bare(found, scope, rest[rest.rfind("}") + 1 :].strip(" []"))
    return tuple(found)


def _add_bare(found: dict[str, None], scope: str, value: str) -> None:
    """A text, a number, a word, or a list of them."""
    texts = _BARE.findall(value)
    numbers = [] if texts else _NUMBER.findall(value)
    for number in numbers:
        found[f"{scope}={_magnitude(float(number))}"] = None
    for text in texts or ([value] if value and not numbers else []):
        _add_text(found, scope, text)


def _add_text(found: dict[str, None], name: str, text: str) -> None:
    words = _WORD.findall(text)
    if len(words) <= 3 and not any(c.isdigit() for c in text):
        found[f"{name}={text}"] = None
    for word in words if len(words) > 1 else ():
        found[f"{name}:{word.lower()}"] = None


def _magnitude(number: float) -> str:
    if number == 0:
        return "0"
    if math.isinf(number):
        return str(number)
    digits = f"{abs(number):.1e}"
    half = "high" if float(digits[:3]) >= 3.2 else "low"
    return f"{'-' if number < 0 else ''}1e{int(digits[4:])} {half}"


def tokens(text: str) -> list[str]:
    """The tokens of a whole observation, line by line."""
    return [t for line in text.split("\n") for t in line_tokens(line)]
