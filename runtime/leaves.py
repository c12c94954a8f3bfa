"""Walking through JSON values: their leaves by path, and copies with one leaf exchanged."""

from collections.abc import Iterable, Iterator
from typing import cast

from runtime.records import Json


def leaves(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every text, number and truth value in a JSON value, with its path such as ``.answer.rows[0]``."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Json]", value).items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(cast("Iterable[Json]", value)):
            yield from leaves(inner, f"{path}[{place}]")
    else:
        yield path, value


def replaced(value: Json, path: str, new: Json, at: str = "") -> Json:
    """A copy of the JSON value with another leaf at a path."""
    if at == path:
        return new
    if isinstance(value, dict):
        return {k: replaced(v, path, new, f"{at}.{k}") for k, v in cast("dict[str, Json]", value).items()}
    if isinstance(value, list | tuple):
        items = cast("Iterable[Json]", value)
        return [replaced(v, path, new, f"{at}[{i}]") for i, v in enumerate(items)]
    return value
