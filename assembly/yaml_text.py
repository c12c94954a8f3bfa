"""YAML 1.2 text to plain values, each with its line. Only what JSON can say: no tags, no code, no surprises.

PyYAML splits the text into events; values are typed here by YAML 1.2's core schema, since PyYAML's own (1.1) reads
``1e-3`` as text, ``off`` as false and ``1:30`` as 90.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import yaml
from yaml import events as seen

from assembly.problems import Path, Problem, dotted
from runtime.records import Json

MAX_DEPTH = 40
"""Sections within sections: far more than an experiment needs, far less than would exhaust the stack."""
MAX_VALUES = 20_000
"""Values after aliases are written out: an alias of aliases grows exponentially."""

_INT = re.compile(r"[-+]?[0-9]{1,400}")
_OTHER_INT = re.compile(r"0o[0-7]{1,21}|0x[0-9a-fA-F]{1,16}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, Json] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{")
_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that may not stand in a YAML file (YAML 1.2.2, section 5.1); a parser tells them without a line."""
MERGE = "<<"
_LOADER: type[yaml.BaseLoader] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A single value as written."""

    line: int
    text: str
    quote: str | None
    """``'``, ``"``, ``|``, ``>``; None for a plain one."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A section (with keys) or a list (without)."""

    line: int
    keys: list[Leaf] | None
    values: list["Node"]


Node = Leaf | Branch


class UnreadableError(Exception):
    """The text is not a YAML document of the kind meant here."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(line, message)
        self.line, self.message = line, message


@dataclass
class Values:
    """What a text says, with the line of every key, and what is wrong with it."""

    data: Json = None
    lines: dict[Path, int] = field(default_factory=dict[Path, int])
    problems: list[Problem] = field(default_factory=list[Problem])


def read(text: str, environment: Mapping[str, str] = os.environ) -> Values:
    """The text's values, with ``${NAME}`` and ``${NAME:-default}`` filled in from the environment.

    A value in which something was filled in is typed afterwards, unless it stands in single quotes; ``$${`` is a plain
    ``${``. Raises UnreadableError if the text is not one YAML document.
    """
    odd = _NOT_YAML.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise UnreadableError(line, f"is not YAML: the character U+{ord(odd[0]):04X} may not stand in it")
    values = Values()
    filler = _Filler(values, environment)
    values.data = filler.value(_Composer(text).document(), ())
    return values


def typed(text: str) -> Json:
    """A plain scalar's value by YAML 1.2's core schema. Raises ValueError for a number that is too large."""
    if text in _WORDS:
        return _WORDS[text]
    if _OTHER_INT.fullmatch(text):
        return int(text, 0)
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        if not math.isfinite(number) or text.lstrip("+-").isdigit():
            raise ValueError("is no number that can be computed with")
        return number
    return text


class _Composer:
    """Events to nodes, without recursion into anything that is not bounded."""

    def __init__(self, text: str) -> None:
        self._events = _events(text)
        self._anchors: dict[str, Node] = {}

    def document(self) -> Node:
        first = self._next()
        while isinstance(first, seen.StreamStartEvent | seen.DocumentStartEvent):
            first = self._next()
        if isinstance(first, seen.StreamEndEvent):
            raise UnreadableError(1, "the file is empty")
        node = self._node(first, 0)
        self._next()
        after = self._next()
        if not isinstance(after, seen.StreamEndEvent):
            raise UnreadableError(_line(after), "a second document begins here; a file holds one experiment")
        return node

    def _next(self) -> seen.Event:
        return next(self._events)

    def _node(self, event: seen.Event, depth: int) -> Node:
        line = _line(event)
        if isinstance(event, seen.AliasEvent):
            name = str(getattr(event, "anchor", ""))
            if name not in self._anchors:
                raise UnreadableError(line, f"*{name} refers to nothing that stands complete above it")
            return self._anchors[name]
        if depth > MAX_DEPTH:
            raise UnreadableError(line, f"sections are nested more than {MAX_DEPTH} deep")
        tag: str | None = getattr(event, "tag", None)
        if tag and tag != "!":
            raise UnreadableError(
                line, f"the tag {tag.replace('tag:yaml.org,2002:', '!!')!r} is not taken; write a plain value"
            )
        node = self._fresh(event, depth, line)
        if anchor := cast("str | None", getattr(event, "anchor", None)):
            self._anchors[anchor] = node
        return node

    def _fresh(self, event: seen.Event, depth: int, line: int) -> Node:
        if isinstance(event, seen.SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(inner := self._next(), seen.SequenceEndEvent):
                items.append(self._node(inner, depth + 1))
            return Branch(line, None, items)
        if isinstance(event, seen.MappingStartEvent):
            return self._section(depth, line)
        assert isinstance(event, seen.ScalarEvent)
        return Leaf(line, event.value, event.style or None)

    def _section(self, depth: int, line: int) -> Branch:
        section = Branch(line, [], [])
        while not isinstance(inner := self._next(), seen.MappingEndEvent):
            key = self._node(inner, depth + 1)
            if not isinstance(key, Leaf) or section.keys is None:
                raise UnreadableError(key.line, "a key is a section or a list; write a word")
            section.keys.append(key)
            section.values.append(self._node(self._next(), depth + 1))
        return section


def _events(text: str) -> Iterator[seen.Event]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)  # pyright: ignore[reportUnknownMemberType]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise UnreadableError(line, f"is not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise UnreadableError(0, f"is not YAML: {str(error).splitlines()[0]}") from None


def _line(event: seen.Event) -> int:
    return event.start_mark.line + 1


class _Filler:
    """Nodes to values."""

    def __init__(self, values: Values, environment: Mapping[str, str]) -> None:
        self._values, self._environment, self._count = values, environment, 0

    def value(self, node: Node, path: Path) -> Json:
        self._count += 1
        if self._count > MAX_VALUES:
            raise UnreadableError(node.line, f"more than {MAX_VALUES} values, with aliases written out")
        self._values.lines.setdefault(path, node.line)
        if isinstance(node, Leaf):
            return self._leaf(node, path)
        if node.keys is None:
            return [self.value(child, (*path, i)) for i, child in enumerate(node.values)]
        return self._section(node.keys, node.values, path)

    def _section(self, keys: list[Leaf], values: list[Node], path: Path) -> Json:
        section: dict[str, Json] = {}
        first: dict[str, int] = {}
        for key, child in zip(keys, values, strict=True):
            place = (*path, key.text)
            if key.text == MERGE and not key.quote:
                message = "'<<' is not taken (YAML 1.1 merges sections by it, YAML 1.2 does not); write the keys out"
                self._problem(path, key.line, message)
                continue
            if key.text in first:
                message = f"is written twice, on lines {first[key.text]} and {key.line}; keep one"
                self._problem(place, key.line, message)
                continue
            first[key.text] = key.line
            self._values.lines[place] = key.line
            section[key.text] = self.value(child, place)
        return section

    def _leaf(self, leaf: Leaf, path: Path) -> Json:
        text = _VARIABLE.sub(lambda match: self._variable(match, leaf, path), leaf.text)
        filled = leaf.quote == '"' and any(m[1] for m in _VARIABLE.finditer(leaf.text))
        if any("\ud800" <= c <= "\udfff" for c in text):
            self._problem(path, leaf.line, "holds half a character (a lone surrogate)")
            return None
        if leaf.quote and not filled:
            return text
        try:
            return typed(text)
        except ValueError as error:
            self._problem(path, leaf.line, f"{text[:40]} {error}")
            return None

    def _variable(self, match: re.Match[str], leaf: Leaf, path: Path) -> str:
        name, default = match[1], match[2]
        if match[0] == "$${":
            return "${"
        if name is None:
            message = (
                "'${' begins a variable that is not well formed; write ${NAME}, ${NAME:-default}, or $${ for a plain ${"
            )
        elif default is not None and "${" in default:
            message = f"{match[0]}}} has a variable within a variable, which is not taken; give a plain default"
        elif found := self._environment.get(name):
            return found
        elif default is not None:
            return default
        elif name in self._environment:
            return ""
        else:
            message = f"${{{name}}} is not set in the environment; set it, or write ${{{name}:-default}}"
        self._problem(path, leaf.line, message)
        return ""

    def _problem(self, path: Path, line: int, message: str) -> None:
        self._values.problems.append(Problem(dotted(path), message, f"line {line}", line))
