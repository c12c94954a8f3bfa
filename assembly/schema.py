"""Where a key stands in the experiment's schema: what may stand beside it, and what it means."""

from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from assembly.experiment import Experiment
from assembly.problems import Path

Schema = dict[str, Any]


@cache
def whole() -> Schema:
    """The experiment file's JSON Schema."""
    return Experiment.model_json_schema()


def resolve(schema: Schema) -> Schema:
    """Follow a reference, and drop the alternative of null."""
    if "$ref" in schema:
        return resolve(whole()["$defs"][schema["$ref"].rsplit("/", 1)[1]])
    some = [s for s in schema.get("anyOf", []) if s.get("type") != "null"]
    return resolve(some[0]) if len(some) == 1 else schema


def locate(location: Path) -> tuple[Path, Schema]:
    """The path in the file, and the schema there, of a place in a validation error.

    A validation error's place also names the chosen kind of a section that comes in kinds; the file's path does not.
    """
    schema, path = whole(), list[str | int]()
    for part in location:
        if part in (by_kind := kinds(schema)):
            schema = by_kind[str(part)]
            continue
        path.append(part)
        inner = schema.get("properties", {}).get(part) or schema.get("items") or schema.get("additionalProperties")
        schema = resolve(cast("Schema", inner)) if isinstance(inner, dict) else {}
    return tuple(path), schema


def kinds(schema: Schema) -> dict[str, Schema]:
    """The kinds that a section comes in, by name."""
    named: dict[str, str] = schema.get("discriminator", {}).get("mapping", {})
    return {kind: resolve({"$ref": reference}) for kind, reference in named.items()}


def homes(word: str) -> Iterator[str]:
    """The dotted keys, anywhere in the file, that end in this word."""
    for name, section in whole()["properties"].items():
        if word in resolve(section).get("properties", {}):
            yield f"{name}.{word}"
