"""Calling functions that were written for something else: asynchronous ones too, and whatever they answer as JSON."""

import inspect
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pydantic_core import to_jsonable_python

from runtime.background import Loop
from runtime.records import Json

LONGEST_S = 600.0
"""How long an asynchronous function may take (s): tools that act outside have limits of their own."""


def called(function: Callable[..., Any], args: Mapping[str, Any], timeout_s: float = LONGEST_S) -> Any:
    """What the function returns, awaited where it has to be. What it raises is raised.

    Raises:
        TimeoutError: an asynchronous function did not answer in time (s).
    """
    found = function(**args)
    return _loop().run(_waited(found), timeout_s) if inspect.isawaitable(found) else found


async def _waited(found: Any) -> Any:
    return await found


@cache
def _loop() -> Loop:
    """One event loop for all of them: clients that belong to a loop find it again."""
    return Loop("adapters")


def as_json(value: Any) -> Json:
    """A value as JSON: models and dataclasses by their fields, what has no JSON form as its text."""
    return to_jsonable_python(value, fallback=str, inf_nan_mode="strings")


def read_json(value: Any) -> Json:
    """As ``as_json``; a text that holds an object or a list, as frameworks pass answers on, is that."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return as_json(value)
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an arguments object, refusing arguments that it does not name."""
    kept = {k: v for k, v in schema.items() if k not in ("title", "description", "$schema")}
    return {"type": "object", "properties": {}, **kept, "additionalProperties": False}
