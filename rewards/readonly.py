"""What a reward term is handed: JSON that it can read like any other, and not write into.

Scenarios are played again, and worlds read them: a term that could write into one would tell the next episode.
"""

from collections.abc import Mapping
from typing import Any, NoReturn, cast

from runtime.records import Json

_REFUSED = "what a reward term reads cannot be changed; copy it first: dict(…), list(…)"


class NotThere(KeyError):
    """A key that the scenario or the outcome does not have."""

    def __init__(self, key: object, known: tuple[str, ...]) -> None:
        super().__init__(key, known)
        self.key, self.known = key, known

    def __str__(self) -> str:
        return f"{self.key!r} is not there, but {', '.join(self.known) or 'nothing'}"


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise TypeError(_REFUSED)


class ReadOnlyDict(dict[str, Json]):
    """A dictionary that refuses to be changed. Copies of it are plain dictionaries."""

    def __missing__(self, key: str) -> NoReturn:
        raise NotThere(key, tuple(map(str, self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse


class ReadOnlyList(list[Json]):
    """A list that refuses to be changed. Copies of it are plain lists."""

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse


def readonly(values: Mapping[str, Json]) -> Mapping[str, Json]:
    """The same values, as they are now, all the way down: nothing that is done to them reaches the originals."""
    return ReadOnlyDict({k: _sealed(v) for k, v in values.items()})


def _sealed(value: Json) -> Json:
    if isinstance(value, dict):
        return readonly(cast("Mapping[str, Json]", value))
    if isinstance(value, list | tuple):
        items = [_sealed(v) for v in cast("list[Json]", value)]
        return ReadOnlyList(items) if isinstance(value, list) else tuple(items)
    return value
