"""Tools: typed Python functions with JSON Schema contracts on what goes in and what comes out."""

import inspect
import json
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast, get_type_hints

from jsonschema_rs import Draft202012Validator, ValidationError
from pydantic import ConfigDict, TypeAdapter, create_model

from runtime.errors import TeamError
from runtime.leaves import leaves
from runtime.records import Fault, Json, ToolCall
from runtime.types import Outside, Tool

MAX_ANSWER_CHARS = 8_000
"""An answer longer than this is cut, and says so: a prompt must not be flooded by one tool."""


def tool(
    function: Callable[..., Json],
    *,
    cost_usd: float = 0.0,
    ends: bool = False,
    loose: bool = False,
    name: str = "",
    outside: Outside | None = None,
) -> Tool:
    """Make a tool of a typed function.

    Args:
        function: its first parameter is the world; the others, all with type hints, are the tool's arguments. The
            docstring is what the agent is told.
        cost_usd: what each call is billed, in US dollars.
        ends: a successful call ends the episode.
        loose: coerce wrongly typed answers (``"25.3"`` for 25.3) and record it, rather than refuse them.
        name: the function's own name by default.
        outside: how it is called where it acts outside the process: time limit, idempotency key, undo.

    Raises:
        TeamError: a type hint or the docstring is missing.
    """
    label = name or function.__name__
    description = inspect.getdoc(function)
    if not description:
        raise TeamError(f"tool {label} has no docstring: say in it what the tool does, agents read it")
    return Tool(
        name=label,
        description=description,
        input_schema=_input_schema(function, label, outside.key if outside else ""),
        output_schema=_output_schema(function, label),
        run=function,
        cost_usd=cost_usd,
        ends=ends,
        loose=loose,
        outside=outside,
    )


def _hints(function: Callable[..., Json]) -> dict[str, Any]:
    return get_type_hints(function, include_extras=True)


def _input_schema(function: Callable[..., Json], label: str, key: str) -> dict[str, Any]:
    hints = _hints(function)
    fields: dict[str, Any] = {}
    parameters = inspect.signature(function).parameters
    if key and key not in parameters:
        raise TeamError(f"tool {label} has no parameter {key!r} to give the idempotency key to")
    for p in [p for p in list(parameters.values())[1:] if p.name != key]:
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            raise TeamError(f"tool {label}: parameter {p.name} must be an ordinary named one")
        if p.name not in hints:
            raise TeamError(f"tool {label}: parameter {p.name} has no type hint; its JSON Schema is made from it")
        fields[p.name] = (hints[p.name], ... if p.default is p.empty else p.default)
    model = create_model(label, __config__=ConfigDict(extra="forbid"), **fields)
    return model.model_json_schema()


def _output_schema(function: Callable[..., Json], label: str) -> dict[str, Any]:
    hints = _hints(function)
    if "return" not in hints:
        raise TeamError(f"tool {label} has no return type; the contract on its answer is made from it")
    return TypeAdapter(hints["return"]).json_schema()


@lru_cache(maxsize=4096)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema), validate_formats=True)


class Contract:
    """A JSON Schema (Draft 2020-12) ready to judge values."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._validator = _validator(json.dumps(schema, sort_keys=True))

    def problem(self, value: Json) -> tuple[str, str] | None:
        """What is wrong with the value and where (a JSON path), or None."""
        try:
            if self._validator.is_valid(value):
                return None
            first = next(iter(self._validator.iter_errors(value)), None)
        except (ValueError, RecursionError) as error:
            return f"not JSON: {error}", "$"
        if first is None:
            return None
        if odd := _no_number(value):
            return odd
        return _message(first), "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in first.instance_path)

    def coerce(self, value: Json) -> Json:
        """The value with texts read as the numbers and truth values that the schema asks for, where they say one."""
        return _coerced(value, self.schema, self.schema)


def _no_number(value: Json) -> tuple[str, str] | None:
    """The first number that JSON cannot say, which the validator takes for null, and where it stands."""
    odd = ((path, leaf) for path, leaf in leaves(value) if isinstance(leaf, float) and not math.isfinite(leaf))
    return next(((f"{leaf} is no number that JSON can say", f"${path}") for path, leaf in odd), None)


def _message(error: ValidationError) -> str:
    return str(error.message)


def _coerced(value: Json, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Json:
    schema = _resolved(schema, root)
    for option in _options(schema):
        changed = _coerced(value, option, root)
        if changed is not value:
            return changed
    if isinstance(value, str):
        return _number(value, schema.get("type"))
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return _kept(items, [_coerced(v, _part(schema, "items"), root) for v in items])
    if isinstance(value, dict):
        fields, rest = _part(schema, "properties"), _part(schema, "additionalProperties")
        held = cast("dict[str, Json]", value)
        return _kept(held, {k: _coerced(v, fields.get(k, rest), root) for k, v in held.items()})
    return value


def _options(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives a value may fulfil, such as a number or null; none where text is one of them."""
    found: list[Mapping[str, Any]] = schema.get("anyOf", [])
    return [] if any(o.get("type") == "string" for o in found) else found


def _part(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A schema inside a schema; one that is only true or false says nothing about types."""
    part: Any = schema.get(key)
    return cast("Mapping[str, Any]", part) if isinstance(part, dict) else {}


def _kept(old: Json, new: Json) -> Json:
    """The old value itself where nothing was coerced in it."""
    return old if repr(old) == repr(new) else new


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    return root.get("$defs", {}).get(str(schema["$ref"]).rsplit("/", 1)[-1], {})


def _number(text: str, kind: object) -> Json:
    try:
        if kind == "integer":
            return int(text.strip())
        if kind == "number":
            return float(text.strip())
    except ValueError:
        return text
    if kind == "boolean" and text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    return text


def parse_call(text: str) -> ToolCall | Fault:
    """Read a call as a language model writes it, ``{"tool": NAME, "args": {…}}``; what cannot be read is a fault."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Fault(code="malformed", message=f"not JSON: {error}")
    if not isinstance(data, dict) or not isinstance(cast("Any", data).get("tool"), str):
        return Fault(code="malformed", message='a call is {"tool": NAME, "args": {...}}')
    fields = cast("dict[str, Any]", data)
    args = fields.get("args", {})
    if not isinstance(args, dict) or set(fields) - {"tool", "args"}:
        return Fault(code="malformed", message='a call has no fields but "tool" and "args", and args is an object')
    return ToolCall(tool=fields["tool"], args=cast("dict[str, Json]", args))


_CANONICAL = json.JSONEncoder(ensure_ascii=False, default=str, separators=(", ", ": "))
"""Made once: ``json.dumps`` with options makes one a call."""


def canonical(value: Json) -> str:
    """One line of JSON, the same for equal values of the same key order; not-JSON values become their text."""
    try:
        return _CANONICAL.encode(value)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, a value that holds itself, or one too deep
        return repr(value)


def heading(call: ToolCall) -> str:
    """A call as it stands before its answer in what a role sees."""
    return f"{call.tool} {canonical(dict(call.args))}" if call.args else call.tool


def shortened(value: Json, limit: int = MAX_ANSWER_CHARS) -> Json:
    """The value, or when its JSON is longer than the limit, its beginning with a marker that says what was cut."""
    text = canonical(value)
    if len(text) <= limit:
        return value
    return {"truncated": True, "characters": len(text), "beginning": text[:limit]}


def finite_calls(tool: Tool, limit: int = 64) -> tuple[ToolCall, ...] | None:
    """Every call the tool's schema allows, if each argument is an enumeration or truth value; else None.

    An argument with a default that cannot be enumerated is left at its default.
    """
    calls: list[dict[str, Json]] = [{}]
    for name, spec in tool.input_schema.get("properties", {}).items():
        values = _finite(spec, tool.input_schema)
        if values is None and "default" in spec:
            continue
        if values is None or len(calls) * len(values) > limit:
            return None
        calls = [{**c, name: v} for c in calls for v in values]
    return tuple(ToolCall(tool=tool.name, args=c) for c in calls)


def _finite(spec: Mapping[str, Any], root: Mapping[str, Any]) -> list[Json] | None:
    spec = _resolved(spec, root)
    if "enum" in spec:
        return list(spec["enum"])
    if "const" in spec:
        return [spec["const"]]
    return [True, False] if spec.get("type") == "boolean" else None
