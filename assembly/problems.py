"""What is wrong with a file, all of it at once: place, key, value found, reason, remedy."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from runtime.errors import RepertoryError

Path = tuple[str | int, ...]
"""Where a value stands: keys of sections, places in lists."""

LONGEST_VALUE = 60
"""Characters of a found value that are shown: enough to recognize it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    key: str
    """The dotted key; empty for the file as a whole."""
    message: str
    """Value found, reason and remedy."""
    place: str = ""
    """``line 4``, ``--set ppo.lr`` or another file and line."""
    line: int = 0
    """For sorting; 0 where it is in no line of the file."""

    def __str__(self) -> str:
        return printable(f"{self.key}: {self.message}" if self.key else self.message)


class Refused(RepertoryError):
    """A file that cannot be accepted; as text, the whole report."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        super().__init__(file, tuple(problems))
        self.file, self.problems = file, tuple(problems)

    def __str__(self) -> str:
        many = len(self.problems)
        places = [printable(p.place) for p in self.problems]
        width = max(map(len, places), default=0)
        lines = [f"  {at:<{width}}   {p}" if width else f"  {p}" for at, p in zip(places, self.problems, strict=True)]
        return "\n".join([f"{printable(self.file)} has {many} problem{'s' * (many != 1)}:", *lines])


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, by line; those without a line last."""
    return sorted(dict.fromkeys(problems), key=lambda p: (p.line == 0, p.line))


def printable(text: str) -> str:
    """The text with what would steer a terminal, or could not be seen, written out."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def show(value: object) -> str:
    """A value as its author would write it, shortened, without passwords in addresses."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return "a section"
        case list() | tuple():
            return "a list"
        case _:
            text = re.sub(r"://[^@/\s]*@", "://***@", str(value))
            short = text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
            return repr(short) if isinstance(value, str) else short


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest in spelling, if one is near."""
    others = [k for k in known if k != word]
    near = [k for k in others if _looks_like(word, k)] or get_close_matches(word, others, n=1, cutoff=0.6)
    return near[0] if near else None


def _looks_like(word: str, known: str) -> bool:
    """Whether a word differs from a known one only in letters of other alphabets, which may look the same."""
    if len(word) != len(known) or word.isascii() or not any(map(str.isascii, word)):
        return False
    return all(a == b or not a.isascii() for a, b in zip(word, known, strict=True))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` where a known word is near, else nothing."""
    near = nearest(word, known)
    return f"; did you mean {near!r}?{_strange(word)}" if near else ""


def _strange(word: str) -> str:
    """Names the characters that no known word has: some look exactly like others."""
    odd = [f"{c!r} is {unicodedata.name(c, f'U+{ord(c):04X}')}" for c in dict.fromkeys(word) if not c.isascii()]
    return f" ({', '.join(odd)})" if odd else ""


def unknown(word: str, known: Iterable[str]) -> str:
    """Says that a word is not among the known ones: the nearest, and all of them."""
    words = list(known)
    listed = f"({', '.join(words)})" if words else "(there are none)"
    return f"{show(word)} is not known{did_you_mean(word, words)} {listed}"


def dotted(path: Iterable[str | int]) -> str:
    """A path as written in messages and in ``--set``."""
    return ".".join(map(str, path))


def undotted(key: str) -> Path:
    """The path that a dotted key means; what looks like a place in a list is one."""
    return tuple(int(part) if re.fullmatch(r"[0-9]{1,5}", part) else part for part in key.split("."))
