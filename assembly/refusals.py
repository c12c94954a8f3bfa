"""What a validation found, in the words of somebody who wrote the file."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from assembly.experiment import Experiment
from assembly.fields import MOST, REFERENCE
from assembly.problems import Path, did_you_mean, nearest, show, unknown
from assembly.schema import Root, Schema, homes, kinds, locate

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "model_type": "a section",
    "model_attributes_type": "a section",
    "dict_type": "a section",
    "tuple_type": "a list",
    "finite_number": "a number that can be computed with",
}
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with one key."""

    path: Path
    message: str
    meant: Path | None = None
    """The key that was probably meant, where the one written is not known."""


def findings(error: ValidationError, root: Root = Experiment) -> list[Finding]:
    """What is wrong with single keys of a file that should be ``root``."""
    found: list[Finding] = []
    for detail in error.errors(include_url=False):
        path, schema = locate(detail["loc"], root)
        if detail["type"] == "union_tag_invalid":
            path = (*path, "kind")
        meant = None
        if detail["type"] == "extra_forbidden":
            _, around = locate(detail["loc"][:-1], root)
            near = nearest(str(path[-1]), around.get("properties", {}))
            meant = (*path[:-1], near) if near else None
        found.append(Finding(path, _message(detail, path, schema, root), meant))
    return _once(found)


def _once(found: list[Finding]) -> list[Finding]:
    """What is said of both ends of a schedule, which may stand in the file as one number, is said of the schedule."""
    both = {f.path[:-1] for f in found if f.path[-1:] == (0,)} & {f.path[:-1] for f in found if f.path[-1:] == (1,)}
    said = {(f.path[:-1], f.message) for f in found if f.path[-1:] == (0,)}
    merged = [
        Finding(f.path[:-1], f.message, f.meant)
        if f.path[-1:] in ((0,), (1,)) and f.path[:-1] in both and (f.path[:-1], f.message) in said
        else f
        for f in found
    ]
    return list(dict.fromkeys(merged))


def _message(detail: ErrorDetails, path: Path, schema: Schema, root: Root) -> str:
    kind, value, context = detail["type"], cast("object", detail["input"]), detail.get("ctx", {})
    if kind in _WANTED:
        return f"wants {_WANTED[kind]}, and is {show(value)}"
    if kind in _BOUNDS:
        word, bound = _BOUNDS[kind]
        return f"{show(value)} must be {word} {_number(context[bound])}"
    if kind in _OF_KINDS:
        return _OF_KINDS[kind](detail, kinds(schema, root))
    if kind == "extra_forbidden":
        return _unknown_key(detail, path, root)
    if kind in _SPECIAL:
        return _SPECIAL[kind](detail, path, schema)
    return f"{detail['msg'][:1].lower()}{detail['msg'][1:]}, and is {show(value)}"


def _missing(_: ErrorDetails, __: Path, schema: Schema) -> str:
    about = schema.get("description", "").rstrip(".")
    about = f" ({about[:1].lower()}{about[1:]})" if about else ""
    return f"is missing{about}"


def _unknown_key(detail: ErrorDetails, path: Path, root: Root) -> str:
    word = str(path[-1])
    _, around = locate(detail["loc"][:-1], root)
    known = list(around.get("properties", {}))
    if not known:
        return f"unknown key; this section takes none. {around.get('description', '')}".rstrip()
    hint = did_you_mean(word, known)
    home = [h for h in homes(word, root) if h != ".".join(map(str, path))]
    if not hint and home:
        hint = f"; it belongs to {home[0]}"
    return f"unknown key{hint or '; here can stand ' + ', '.join(known)}"


def _unknown_word(detail: ErrorDetails, _: Path, schema: Schema) -> str:
    allowed = [str(v) for v in schema.get("enum", [schema.get("const")])]
    value = cast("object", detail["input"])
    return (
        unknown(value, allowed)
        if isinstance(value, str)
        else f"wants one of {', '.join(allowed)}, and is {show(value)}"
    )


def _unknown_kind(detail: ErrorDetails, known: Mapping[str, Schema]) -> str:
    value = cast("object", cast("dict[str, Any]", detail["input"]).get("kind"))
    if not isinstance(value, str):
        return f"wants one of {', '.join(known)}, and is {show(value)}"
    return unknown(value, known)


def _no_kind(_: ErrorDetails, known: Mapping[str, Schema]) -> str:
    return f"kind is missing; say which: {', '.join(known)}"


def _number(value: float) -> str:
    if value == MOST:
        return f"{value:,} (what 32 bits hold)"
    return str(value) if isinstance(value, int) else f"{value:g}"


def _pattern(detail: ErrorDetails, _: Path, schema: Schema) -> str:
    pattern = detail.get("ctx", {}).get("pattern", "")
    wanted = schema.get("description") or ("package.module:attribute" if pattern == REFERENCE else pattern)
    return f"{show(cast('object', detail['input']))} is not of the form wanted: {wanted}"


def _length(detail: ErrorDetails, _: Path, schema: Schema) -> str:
    return f"wants {schema.get('title', 'fewer or more values')}, and is {show(cast('object', detail['input']))}"


def _empty(_: ErrorDetails, __: Path, ___: Schema) -> str:
    return "is empty"


def _own(detail: ErrorDetails, _: Path, __: Schema) -> str:
    return f"{detail['msg']}, and is {show(cast('object', detail['input']))}"


def _unshown(detail: ErrorDetails, _: Path, __: Schema) -> str:
    return detail["msg"]


_OF_KINDS: dict[str, Callable[[ErrorDetails, Mapping[str, Schema]], str]] = {
    "union_tag_invalid": _unknown_kind,
    "union_tag_not_found": _no_kind,
}
_SPECIAL: dict[str, Callable[[ErrorDetails, Path, Schema], str]] = {
    "missing": _missing,
    "literal_error": _unknown_word,
    "string_pattern_mismatch": _pattern,
    "string_too_short": _empty,
    "too_long": _length,
    "gpus": _own,
    "redis": _own,
    "otlp": _own,
    "moment": _own,
    "secret": _unshown,
}


def under(path: Path, others: Iterable[Path]) -> bool:
    """Whether one of the places is this one, or around or inside it."""
    return any(path[: len(o)] == o or o[: len(path)] == path for o in others)
