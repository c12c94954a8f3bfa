"""Where a key stands in a file's schema: what may stand beside it, and what it means."""

from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from pydantic import BaseModel

from assembly.experiment import Experiment
from assembly.problems import Path

Schema = dict[str, Any]
Root = type[BaseModel]
"""The model of the whole file."""


@cache
def whole(root: Root = Experiment) -> Schema:
    """The file's JSON Schema."""
    return root.model_json_schema()


def resolve(schema: Schema, root: Root = Experiment) -> Schema:
    """Follow a reference, and drop the alternative of null."""
    if "$ref" in schema:
        return resolve(whole(root)["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    some = [s for s in schema.get("anyOf", []) if s.get("type") != "null"]
    if len(some) != 1:
        return schema
    about = {k: schema[k] for k in ("description",) if k in schema}
    return {**about, **resolve(some[0], root)}


def locate(location: Path, root: Root = Experiment) -> tuple[Path, Schema]:
    """The path in the file, and the schema there, of a place in a validation error.

    A validation error's place also names the chosen kind of a section that comes in kinds; the file's path does not.
    """
    schema, path = whole(root), list[str | int]()
    for part in location:
        if part in (by_kind := kinds(schema, root)):
            schema = by_kind[str(part)]
            continue
        path.append(part)
        inner = schema.get("properties", {}).get(part) or schema.get("items") or schema.get("additionalProperties")
        schema = resolve(cast("Schema", inner), root) if isinstance(inner, dict) else {}
    return tuple(path), schema


def kinds(schema: Schema, root: Root = Experiment) -> dict[str, Schema]:
    """The kinds that a section comes in, by name."""
    named: dict[str, str] = schema.get("discriminator", {}).get("mapping", {})
    return {kind: resolve({"$ref": reference}, root) for kind, reference in named.items()}


def homes(word: str, root: Root = Experiment) -> Iterator[str]:
    """The dotted keys, anywhere in the file, that end in this word."""
    for name, section in whole(root)["properties"].items():
        if word in resolve(section, root).get("properties", {}):
            yield f"{name}.{word}"
