"""HTML whose text is escaped unless it was built here: what agents say can never become markup."""

import json
from html import escape
from typing import Any


class Html(str):
    """Markup that is safe to insert as it is."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str) -> Html:
    """An element; plain strings among its children are escaped.

    The attribute ``class_`` loses its underscore, and ``aria_label`` gets a dash for its own.
    """
    listed = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{listed}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """Children one after the other."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element: it holds no character that could end one."""
    text = json.dumps(value, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def table(head: list[str], rows: list[list[str]], **attributes: str) -> Html:
    """A table with one header row."""
    top = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag("table", top, body, **attributes)
