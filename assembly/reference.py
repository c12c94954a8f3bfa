"""Writes the reference of the experiment file from its model: ``python -m assembly.reference``."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from assembly.fields import MOST, SCHEDULE_TITLE
from assembly.schema import Schema, kinds, resolve, whole

TARGET = Path(__file__).parent.parent / "docs" / "experiment-file.md"
"""Where the reference stands."""

WORDS = {
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "string": "text",
    "object": "section",
}
"""What JSON Schema's types are called."""

HEAD = """# The experiment file

Written by `python -m assembly.reference` from the model that reads the file; change that, not this.

A file that is wrong is refused before anything starts (exit 2), with every problem at once: line, key, value found,
reason, and the nearest known spelling. The text is YAML 1.2: `1e-3` is a number, `off` and `yes` are words, a key may
stand once, tags are not taken.

* `${NAME}` is the environment variable of that name, and refused if there is none; `${NAME:-default}` has a default.
  What comes out is typed like any value (`${STEPS:-200}` is a number), except in single quotes, where it stays text.
  Inside `{…}` and `[…]`, put it in double quotes. `$${` is a plain `${`.
* `--set dotted.key=value` writes one key over the file's, and is checked like it. Places in lists count from 0:
  `--set rewards.terms.0.weight=2`.
* Paths are from the experiment file's folder. Modules of your own are found where Python looks, and there.
* Whole numbers go up to 2,147,483,647. Sizes that this machine's memory cannot hold are refused, with an estimate.
* A key that would have no effect beside the others is refused.
"""


def reference() -> str:
    """The whole reference, as Markdown."""
    return "\n".join([HEAD, *_section("", whole())]).rstrip() + "\n"


def _section(path: str, schema: Schema) -> Iterator[str]:
    fields = {name: (field, resolve(field)) for name, field in schema["properties"].items()}
    yield f"## `{path}`\n" if path else "## Top level\n"
    if path and "description" in schema:
        yield f"{schema['description']}\n"
    plain = [_row(name, schema, field, inner) for name, (field, inner) in fields.items() if not _sections(inner)]
    if plain:
        yield "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *plain, ""])
    for name, (_, inner) in fields.items():
        for suffix, part in _sections(inner):
            yield from _section(f"{path}.{name}{suffix}".lstrip("."), part)


def _sections(schema: Schema) -> list[tuple[str, Schema]]:
    """The sections a key opens: itself, the items of a list, or the kinds of named ones."""
    if "properties" in schema:
        return [("", schema)]
    items = resolve(schema.get("items", {}))
    if "properties" in items:
        return [("[]", items)]
    named = schema.get("additionalProperties")
    by_kind = kinds(cast("Schema", named)) if isinstance(named, dict) else {}
    return [(f".NAME (kind: {kind})", part) for kind, part in by_kind.items()]


def _row(name: str, around: Schema, field: Schema, inner: Schema) -> str:
    meaning = field.get("description") or inner.get("description", "")
    default = "required" if name in around.get("required", ()) else f"`{_default(field, inner)}`"
    return f"| `{name}` | {_type(inner)} | {default} | {' '.join(meaning.split())} |"


def _default(field: Schema, inner: Schema) -> str:
    value = field.get("default", {} if inner.get("type") == "object" else None)
    if inner.get("title") == SCHEDULE_TITLE and isinstance(value, list) and value[0] == value[1]:
        value = cast("list[float]", value)[0]
    return value if isinstance(value, str) else json.dumps(value)


def _type(schema: Schema) -> str:
    if "title" in schema and "type" not in schema and "anyOf" not in schema:
        return schema["title"]
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list ({_type(resolve(schema['items']))})"
    return WORDS[schema["type"]] + _bounds(schema)


def _bounds(schema: Schema) -> str:
    words = {"exclusiveMinimum": "above", "minimum": "at least", "maximum": "at most", "exclusiveMaximum": "below"}
    found = [f"{word} {schema[key]}" for key, word in words.items() if key in schema and schema[key] != MOST]
    return f", {', '.join(found)}" if found else ""


def main() -> None:
    """Write the reference."""
    TARGET.write_text(reference(), encoding="utf-8")
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
