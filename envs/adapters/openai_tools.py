"""Tools as an OpenAI-compatible chat API is given them, and the Python functions that a loop around it calls.

tools = from_openai_tools(SPECS, {"get_order": get_order, "refund": refund}, ends=("refund",))
Team(…, tools=tools, roles=(Role(name="clerk", brief=SYSTEM_PROMPT, tools=tuple(tools)),))
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast, get_type_hints

import jsonschema_rs
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from envs.adapters.calling import as_json, called, closed
from runtime.errors import TeamError
from runtime.records import Json
from runtime.types import Outside, Tool

WORLD = "world"
"""The first parameter of a function that acts on the episode's world; it stands in no spec."""


def from_openai_tools(
    specs: Sequence[Mapping[str, Any]],
    functions: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]],
    *,
    ends: Sequence[str] = (),
    cost_usd: Mapping[str, float] | None = None,
    outside: Mapping[str, Outside] | None = None,
) -> dict[str, Tool]:
    """Tools of specs and the functions that carry them out.

    Args:
        specs: as ``tools=`` of the Chat Completions API, of the Responses API, or the inner part alone.
        functions: by the specs' names, or a list of them by their own. One whose first parameter is called ``world`` is
            given the episode's world; asynchronous ones are awaited.
        ends: names of tools whose success ends the episode.
        cost_usd: what a call is billed, by name, in US dollars.
        outside: how those are called that act outside the process. The idempotency key stands in no spec.

    Raises:
        TeamError: a spec and its function do not agree; every disagreement, by the tool's name.
    """
    by_name = functions if isinstance(functions, Mapping) else {f.__name__: f for f in functions}
    read = [_spec(s) for s in specs]
    named: dict[str, Any] = {"ends": ends, "cost_usd": cost_usd or {}, "outside": outside or {}}
    problems = [*_unpaired(read, by_name), *_unknown(read, named)]
    for spec in read:
        if spec.name in by_name:
            key = named["outside"][spec.name].key if spec.name in named["outside"] else ""
            problems += [f"tool {spec.name}: {text}" for text in _disagreements(spec, by_name[spec.name], key)]
    if problems:
        raise TeamError("specs and functions do not agree:\n  " + "\n  ".join(problems))
    return {s.name: _tool(s, by_name[s.name], ends, cost_usd or {}, (outside or {}).get(s.name)) for s in read}


@dataclass(frozen=True, slots=True)
class _Spec:
    name: str
    description: str
    parameters: Mapping[str, Any]

    @property
    def fields(self) -> Mapping[str, Mapping[str, Any]]:
        """The arguments' schemas by name."""
        return self.parameters.get("properties", {})


def _spec(given: Mapping[str, Any]) -> _Spec:
    inner: Any = given.get("function", given)
    if given.get("type", "function") != "function" or not isinstance(inner, Mapping) or "name" not in inner:
        raise TeamError(f'a spec is {{"type": "function", "function": {{"name": …}}}}, not {str(dict(given))[:200]}')
    spec = cast("Mapping[str, Any]", inner)
    return _Spec(str(spec["name"]), str(spec.get("description") or ""), spec.get("parameters") or {})


def _unpaired(specs: Sequence[_Spec], functions: Mapping[str, Callable[..., Any]]) -> Iterator[str]:
    names = [s.name for s in specs]
    for name in dict.fromkeys(n for n in names if names.count(n) > 1):
        yield f"tool {name}: has two specs"
    for name in dict.fromkeys(n for n in names if n not in functions):
        yield f"tool {name}: has a spec, and no function carries it out"
    for name in (n for n in functions if n not in names):
        yield f"tool {name}: has a function, and no spec tells of it"


def _unknown(specs: Sequence[_Spec], named: Mapping[str, Sequence[str] | Mapping[str, Any]]) -> Iterator[str]:
    known = {s.name for s in specs}
    for argument, names in named.items():
        for name in (n for n in names if n not in known):
            yield f"{argument} names {name!r}, which is no tool: {', '.join(sorted(known))}"


# -- do they agree?


def _disagreements(spec: _Spec, function: Callable[..., Any], key: str) -> list[str]:
    if problem := _no_schema(spec.parameters):
        return [problem]
    if not (spec.description or inspect.getdoc(function)):
        return ["neither the spec nor the function says what it does: agents read that"]
    parameters = _parameters(function)
    if key and parameters.pop(key, None) is None:
        return [f"the function has no parameter {key!r} to give the idempotency key to"]
    return [*_names(spec, parameters), *_types(spec, function, parameters)]


def _no_schema(schema: Mapping[str, Any]) -> str:
    if schema.get("type", "object") != "object":
        return f"its parameters are of type {schema['type']!r}; arguments are an object"
    try:
        jsonschema_rs.Draft202012Validator(dict(schema))
    except (ValueError, TypeError) as error:
        return f"its parameters are no JSON Schema: {getattr(error, 'message', error)}"
    return ""


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The function's parameters that a caller gives by name, without the world."""
    found = dict(inspect.signature(function).parameters)
    if next(iter(found), None) == WORLD:
        del found[WORLD]
    return found


def _names(spec: _Spec, parameters: Mapping[str, inspect.Parameter]) -> Iterator[str]:
    kinds = {p.kind for p in parameters.values()}
    open_ended = inspect.Parameter.VAR_KEYWORD in kinds
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            yield f"the function's parameter {name!r} cannot be given by name"
        elif parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
            continue
        elif parameter.default is parameter.empty and name not in spec.fields:
            yield f"the function needs {name!r}, and the spec has no such parameter"
        elif parameter.default is parameter.empty and name not in spec.parameters.get("required", ()):
            yield f"the function needs {name!r}, and the spec lets it be left out (it is not in 'required')"
    if not open_ended:
        for name in (n for n in spec.fields if n not in parameters):
            yield f"the spec has the parameter {name!r}, and the function does not take it"


def _types(spec: _Spec, function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]) -> Iterator[str]:
    hints = _hints(function)
    for name in (n for n in spec.fields if n in parameters and n in hints):
        adapter = _adapter(hints[name])
        if adapter is not None:
            yield from _type(name, spec.fields[name], adapter)


def _type(name: str, field: Mapping[str, Any], adapter: TypeAdapter[Any]) -> Iterator[str]:
    said, taken = _kinds(field), _kinds(adapter.json_schema())
    if said and taken and not said & taken and not (said == {"integer"} and "number" in taken):
        yield f"{name!r} is of type {_or(said)} in the spec, and the function takes {_or(taken)}"
        return
    for value in field.get("enum", [field["const"]] if "const" in field else []):
        try:
            adapter.validate_python(value)
        except ValidationError:
            yield f"{name!r} may be {value!r} by the spec, and the function does not take that"


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types that a schema names; empty: it does not say."""
    found: Any = schema.get("type")
    if found is not None:
        return {found} if isinstance(found, str) else set(found)
    options: Any = schema.get("anyOf", schema.get("oneOf"))
    inner = [_kinds(o) for o in options] if options else []
    return {kind for kinds in inner for kind in kinds} if all(inner) else set()


def _or(kinds: set[str]) -> str:
    return " or ".join(sorted(kinds))


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return get_type_hints(function)
    except (NameError, TypeError):  # names that only a type checker knows, or something that is no function
        return {}


def _adapter(hint: Any) -> TypeAdapter[Any] | None:
    """What checks values of a type; None for a type that has no JSON form."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        adapter.json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError):
        return None
    return adapter


# -- one that agrees


def _tool(
    spec: _Spec, function: Callable[..., Any], ends: Sequence[str], cost: Mapping[str, float], outside: Outside | None
) -> Tool:
    answer = _adapter(_hints(function).get("return", Any))
    return Tool(
        name=spec.name,
        description=spec.description or inspect.getdoc(function) or "",
        input_schema=closed(spec.parameters),
        output_schema=answer.json_schema(mode="serialization") if answer is not None else {},
        run=_run(function),
        cost_usd=cost.get(spec.name, 0.0),
        ends=spec.name in ends,
        outside=outside,
    )


def _run(function: Callable[..., Any]) -> Callable[..., Json]:
    takes_world = next(iter(inspect.signature(function).parameters), None) == WORLD

    @wraps(function)
    def run(world: object, **args: Json) -> Json:
        return as_json(called(function, {WORLD: world, **args} if takes_world else args))

    return run
