"""Whether everything that one JSON Schema lets through can be read by another: what is not certain is told."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

Schema = Mapping[str, Any]
KNOWN_TYPES: tuple[str, ...] = ("null", "boolean", "integer", "number", "string", "array", "object")
LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
COMPARED = {
    *LOWER,
    *UPPER,
    "type",
    "enum",
    "const",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "anyOf",
    "oneOf",
    "$ref",
    "$defs",
    "definitions",
}
ASIDE = {
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
    "$comment",
}
"""Keywords that let nothing through and keep nothing out. All others must be the same on both sides, word for word."""
DEPTH = 32
"""How deep schemas are compared: one that refers to itself has no end."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two schemas with the documents that their references point into."""

    sent: Schema
    taken: Schema
    roots: tuple[Schema, Schema]
    roles: tuple[str, str]
    path: str = "$"
    depth: int = 0

    def at(self, sent: Any, taken: Any, step: str = "") -> "_Pair":
        """The same for parts of them."""
        return _Pair(_schema(sent), _schema(taken), self.roots, self.roles, self.path + step, self.depth + 1)


def misfits(sent: Schema, taken: Schema, roles: tuple[str, str]) -> list[str]:
    """Where what is sent may not be what is taken, each place with both roles' words; empty: it always is."""
    return list(dict.fromkeys(_compare(_Pair(sent, taken, (sent, taken), roles))))


def _compare(pair: _Pair) -> Iterator[str]:
    if pair.depth > DEPTH:
        return
    pair = _Pair(
        _resolved(pair.sent, pair.roots[0]),
        _resolved(pair.taken, pair.roots[1]),
        pair.roots,
        pair.roles,
        pair.path,
        pair.depth,
    )
    if pair.sent == pair.taken and pair.roots[0].get("$defs") == pair.roots[1].get("$defs"):
        return
    if pair.taken.get("not") == {} and pair.sent.get("not") != {}:
        yield f"{pair.path}: {pair.roles[0]} may send it, {pair.roles[1]} takes no such field"
        return
    if options := _options(pair.sent):
        for option in options:
            yield from _compare(pair.at(option, pair.taken))
    elif options := _options(pair.taken):
        yield from _some(pair, options)
    else:
        yield from _plain(pair)


def _some(pair: _Pair, options: Sequence[Schema]) -> Iterator[str]:
    """One of the taken alternatives must fit; of those that do not, the nearest is told."""
    found = [list(_compare(pair.at(pair.sent, option))) for option in options]
    if all(found):
        yield from min(found, key=len)


def _plain(pair: _Pair) -> Iterator[str]:
    wrong = list(_types(pair)) or list(_values(pair))
    yield from wrong
    if not wrong:
        yield from _bounds(pair)
        yield from _fields(pair)
        if "items" in pair.taken:
            yield from _compare(pair.at(pair.sent.get("items", {}), pair.taken["items"], "[]"))


def _types(pair: _Pair) -> Iterator[str]:
    sent, taken = _kinds(pair.sent), _kinds(pair.taken)
    allowed = taken | ({"integer"} if "number" in taken else set[str]())
    if not sent <= allowed:
        yield _said(pair, "/".join(sorted(sent)), "/".join(sorted(taken)))


def _values(pair: _Pair) -> Iterator[str]:
    """Enumerations: all that is sent must be among what is taken."""
    taken = _listed(pair.taken)
    if taken is None:
        return
    sent = _listed(pair.sent)
    if sent is None:
        yield _said(pair, "any value", f"only {taken}")
    elif extra := [v for v in sent if v not in taken]:
        yield _said(pair, str(extra), f"only {taken}")


def _bounds(pair: _Pair) -> Iterator[str]:
    if _listed(pair.sent) is not None:
        return
    for words, tighter in ((LOWER, max), (UPPER, min)):
        for word in words:
            if word in pair.taken:
                sent, taken = pair.sent.get(word), pair.taken[word]
                if sent is None or tighter(sent, taken) != sent:
                    yield _said(pair, f"{word} {sent}", f"{word} {taken}")
    for word in pair.taken.keys() - COMPARED - ASIDE:
        if pair.sent.get(word) != pair.taken[word]:
            yield _said(pair, f"{word} {pair.sent.get(word)}", f"{word} {pair.taken[word]}")


def _fields(pair: _Pair) -> Iterator[str]:
    sent, taken = _part(pair.sent, "properties"), _part(pair.taken, "properties")
    for name in pair.taken.get("required", ()):
        if name not in pair.sent.get("required", ()):
            yield _missing(pair, name, sent)
    for name, schema in taken.items():
        if name in sent:
            yield from _compare(pair.at(sent[name], schema, f".{name}"))
        elif name not in pair.taken.get("required", ()) and _renamed(name, sent, taken):
            yield _missing(pair, name, sent)
    rest = pair.taken.get("additionalProperties", True)
    if rest is not True:
        for name in sent.keys() - taken.keys():
            yield from _compare(pair.at(sent[name], rest, f".{name}"))
        if "object" in _kinds(pair.sent) and pair.sent.get("additionalProperties", True) is True:
            yield _said(pair, "fields of any name", "only those it names")


def _missing(pair: _Pair, name: str, sent: Schema) -> str:
    if name in sent:
        return f"{pair.path}.{name}: {pair.roles[0]} may leave it out, {pair.roles[1]} needs it"
    guess = _renamed(name, sent, _part(pair.taken, "properties"))
    hint = f" (is it {guess!r} now?)" if guess else ""
    return f"{pair.path}.{name}: {pair.roles[1]} reads it, {pair.roles[0]} does not send it{hint}"


def _renamed(name: str, sent: Schema, taken: Schema) -> str:
    """What the field may be called at the sender now: a close name, that the receiver does not know."""
    return next(iter(get_close_matches(name, sent.keys() - taken.keys(), n=1, cutoff=0.5)), "")


def _said(pair: _Pair, sent: str, taken: str) -> str:
    return f"{pair.path}: {pair.roles[0]} sends {sent}, {pair.roles[1]} takes {taken}"


def _kinds(schema: Schema) -> set[str]:
    listed = _listed(schema)
    if "type" not in schema:
        return set(KNOWN_TYPES) - {"integer"} if listed is None else {_kind(v) for v in listed}
    kinds: Any = schema["type"]
    return {kinds} if isinstance(kinds, str) else set(kinds)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _listed(schema: Schema) -> list[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _options(schema: Schema) -> list[Schema]:
    return schema.get("anyOf") or schema.get("oneOf") or []


def _schema(part: Any) -> Schema:
    """A schema that may be written as true (anything) or false (nothing)."""
    if isinstance(part, bool):
        return {} if part else {"not": {}}
    return cast("Schema", part)


def _part(schema: Schema, key: str) -> Schema:
    return schema.get(key, {})


def _resolved(schema: Schema, root: Schema) -> Schema:
    """What a reference into the same document points to."""
    for _ in range(DEPTH):
        if "$ref" not in schema:
            break
        found: Any = root
        for step in str(schema["$ref"]).removeprefix("#").split("/")[1:]:
            found = found[step]
        schema = {**found, **{k: v for k, v in schema.items() if k != "$ref"}}
    return schema
