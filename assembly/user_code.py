"""Import what a file names, and say whose fault it is when that fails: never with a traceback of ours."""

import importlib
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from traceback import extract_tb
from types import ModuleType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from assembly.problems import did_you_mean, nearest, show, unknown
from runtime.errors import RepertoryError, TeamError

_OURS = Path(__file__).parent
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class NotUsableError(RepertoryError):
    """Something that a file names cannot be used: why, and what to do."""


def attribute(reference: str, near: Path) -> Any:
    """What ``package.module:attribute`` refers to; modules beside the experiment file are found too.

    Raises:
        NotUsableError: there is no such module or attribute, or the module raised.
    """
    name, _, attr = reference.partition(":")
    if not all(part.isidentifier() for part in (*name.split("."), attr)):
        raise NotUsableError(f"{show(reference)} is not of the form package.module:attribute")
    module = _module(name, near)
    try:
        return getattr(module, attr)
    except AttributeError:
        public = [n for n in dir(module) if not n.startswith("_")]
        raise NotUsableError(f"{name} has no {attr!r}{did_you_mean(attr, public)}") from None


def made(function: Callable[..., Any], args: Sequence[Any], what: str) -> Any:
    """What the user's function makes. Raises NotUsableError with the user's own file and line if it raises."""
    try:
        return function(*args)
    except TeamError as error:
        raise NotUsableError(str(error)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's code raises is his to read
        raise NotUsableError(f"{what} raised {_told(error)}") from None


def misfits(function: Callable[..., Any], args: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Arguments (by name; empty for a missing one) that a function does not take, and why."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return []
    takes = {n: p for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    wrong = [(n, _no_argument(n, takes)) for n in args if n not in takes and not anything]
    wrong += [("", f"{n!r} is missing") for n, p in takes.items() if p.default is p.empty and n not in args]
    hints = _hints(function)
    return wrong + [(n, w) for n, v in args.items() if n in takes and (w := _wrong_type(v, hints.get(n)))]


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments, as far as can be told without calling it."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a function in C that says nothing of its arguments
        return True
    return True


def missing_module(name: str) -> str | None:
    """Why no module of this dotted name can be found, without importing any of it; None if it can."""
    path: list[str] | None = None
    parts = name.split(".")
    for depth, part in enumerate(parts):
        whole = ".".join(parts[: depth + 1])
        spec = PathFinder.find_spec(whole, path) if depth else _found(part)
        if spec is None:
            around = f" in {'.'.join(parts[:depth])}" if depth else ""
            return f"there is no module {whole!r}{around}{did_you_mean(part, _modules(path))}"
        path = list(spec.submodule_search_locations or [])
    return None


def _found(top: str) -> ModuleSpec | None:
    """Where a top-level module is, by every finder there is (packages installed as editable have their own)."""
    try:
        return find_spec(top)
    except ValueError:  # a module without a spec is in memory, and so has no parts to find
        return None


def _modules(path: Iterable[str] | None) -> list[str]:
    return [m.name for m in iter_modules(path)]


def _module(name: str, near: Path) -> ModuleType:
    top = name.partition(".")[0]
    if top not in sys.modules and _found(top) is None and str(near) not in sys.path:
        sys.path.append(str(near))
    if name not in sys.modules and (why := missing_module(name)):
        raise NotUsableError(f"{why} (looked for where Python looks, and in {near})")
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's module raises is his to read
        raise NotUsableError(f"importing {name} raised {_told(error)}") from None


def _told(error: BaseException) -> str:
    """The user's own line and the message."""
    frames = [f for f in extract_tb(error.__traceback__) if not f.filename.startswith("<frozen")]
    theirs = [f for f in frames if Path(f.filename).parent != _OURS]
    own = [f for f in theirs if not f.filename.startswith(_LIBRARIES)] or theirs
    where = f" at {own[-1].filename}:{own[-1].lineno}" if own else ""
    if isinstance(error, SyntaxError):
        where = f" at {error.filename}:{error.lineno}"
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}{where}: {message}".rstrip(": ")


def _no_argument(name: str, takes: Iterable[str]) -> str:
    near = nearest(name, takes)
    return "is no argument of it; " + (f"did you mean {near!r}?" if near else f"it takes {', '.join(takes) or 'none'}")


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function.__init__ if isinstance(function, type) else function)
    except Exception:  # noqa: BLE001 - hints that cannot be resolved say nothing about the arguments
        return {}


_PLAIN: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "text"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
}


def _wrong_type(value: object, hint: Any) -> str | None:
    if get_origin(hint) is Literal:
        allowed = get_args(hint)
        if value in allowed:
            return None
        return (
            unknown(value, map(str, allowed))
            if isinstance(value, str)
            else f"wants one of {', '.join(map(str, allowed))}"
        )
    if hint not in _PLAIN:
        return None
    kinds, wanted = _PLAIN[hint]
    fits = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
    return None if fits else f"wants {wanted}, and is {show(value)}"


def as_callable(value: object) -> Callable[..., Any] | None:
    """The value if it can be called."""
    return cast("Callable[..., Any]", value) if callable(value) else None
