"""Any PettingZoo environment by its dotted name: found, made, looked over, and guarded against illegal moves."""

import importlib
import inspect
import pkgutil
import sys
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from types import ModuleType
from typing import Any, Literal, cast

from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from envs.moves import LegalMoves, ParallelLegalMoves
from runtime.errors import TeamError
from runtime.types import AgentId

Form = Literal["aec", "parallel"]
Game = AECEnv[AgentId, Any, Any] | ParallelEnv[AgentId, Any, Any]
Factory = Callable[..., Any]

GAMES = "pip install -e '.[games]'"
"""What brings the card, board and particle games."""
_TRAINABLE_ACTIONS = (spaces.Discrete, spaces.Box)
_ENDED = {
    "waterworld": "PettingZoo dropped it in 1.26; the last version that has it: pip install 'pettingzoo<1.26' pymunk",
}
"""Environments that left PettingZoo, and where they are."""


@dataclass(frozen=True, slots=True)
class GameInfo:
    """What there is to know of a game before it is played."""

    possible_agents: tuple[AgentId, ...]
    observation_spaces: Mapping[AgentId, spaces.Space[Any]]
    action_spaces: Mapping[AgentId, spaces.Space[Any]]
    form: Form


def make(name: str, args: Mapping[str, Any] | None = None, seed: int | None = None) -> Game:
    """Make an environment and look it over.

    Args:
        name: a module's dotted name, such as ``pettingzoo.classic.tictactoe_v3``, or ``package.module:function``.
        args: for the environment's own factory; ``form`` (``aec`` or ``parallel``) is taken out, and chooses where a
            module offers both. By default parallel, unless that is only turns played one by one.
        seed: for the first reset and for sampling from the action spaces.

    Raises:
        TeamError: it is not there, does not take the arguments, or has spaces that cannot be trained; with the remedy.
    """
    given = dict(args or {})
    form = given.pop("form", None)
    if form not in (None, "aec", "parallel"):
        raise TeamError(f"{name}: form is {form!r}; it is aec or parallel")
    with _quiet():
        env = _made(name, given, form)
    _looked_over(name, env, seed)
    return LegalMoves(env) if isinstance(env, AECEnv) else ParallelLegalMoves(env)


def describe(env: Game) -> GameInfo:
    """A game's agents, spaces and form."""
    game, agents = cast("Any", env), tuple(env.possible_agents)
    return GameInfo(
        possible_agents=agents,
        observation_spaces={a: game.observation_space(a) for a in agents},
        action_spaces={a: game.action_space(a) for a in agents},
        form="aec" if isinstance(env, AECEnv) else "parallel",
    )


@contextmanager
def _quiet() -> Generator[None]:
    """Leave out what importing games warns of: their libraries' own deprecations, and that of their module names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        yield


# -- finding it


def _made(name: str, args: Mapping[str, Any], form: Form | None) -> Game:
    module_name, _, function = name.partition(":")
    module = _module(module_name)
    if function:
        return _of_form(name, _called(name, _attribute(module, function), args), form)
    found = {f: getattr(module, n, None) for f, n in (("parallel", "parallel_env"), ("aec", "env"))}
    if not any(callable(f) for f in found.values()):
        raise TeamError(f"{name}: the module has neither env() nor parallel_env(); name the function: {name}:FUNCTION")
    if form is not None:
        factory = found[form]
        if factory is None:
            raise TeamError(f"{name} has no {form} form; leave `form` out")
        return _of_form(name, _called(name, factory, args), form)
    if found["parallel"] is not None:
        env = _of_form(name, _called(name, found["parallel"], args), None)
        if found["aec"] is None or not _takes_turns(env):
            return env
    return _of_form(name, _called(name, cast("Factory", found["aec"]), args), None)


def _takes_turns(env: Game) -> bool:
    """Whether a parallel form is only a game of turns in which everybody but one waits."""
    inner: Any = env
    while inner is not None:
        if type(inner).__name__ == "turn_based_aec_to_parallel_wrapper":
            return True
        inner = getattr(inner, "env", None)
    return False


def _of_form(name: str, env: Any, form: Form | None) -> Game:
    if not isinstance(env, AECEnv | ParallelEnv):
        raise TeamError(
            f"{name} made a {type(env).__name__}, which is no PettingZoo environment (AECEnv or ParallelEnv)"
        )
    game = cast("Game", env)
    made: Form = "aec" if isinstance(game, AECEnv) else "parallel"
    if form not in (None, made):
        raise TeamError(f"{name} has only its {made} form; leave `form` out")
    return game


def _module(name: str) -> ModuleType:
    if name.startswith("pettingzoo.mpe."):
        raise TeamError(
            f"{name}: the particle games have a package of their own; write {name.replace('pettingzoo.mpe', 'mpe2')}"
        )
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise TeamError(f"there is no module {name!r}{_instead(name)}") from error
        extra = f"pip install 'pettingzoo[{name.split('.')[1]}]'" if name.startswith("pettingzoo.atari") else GAMES
        raise TeamError(f"{name} needs {missing!r}, which is not installed: {extra}") from error
    except ImportError as error:
        raise TeamError(f"{name} does not import: {error}") from error


def _instead(name: str) -> str:
    parent, _, last = name.rpartition(".")
    for ended, why in _ENDED.items():
        if last.startswith(ended):
            return f": {why}"
    if name.split(".", maxsplit=1)[0] in ("pettingzoo", "mpe2") and name.split(".", maxsplit=1)[0] not in sys.modules:
        return f"; is it installed? {GAMES}"
    near = get_close_matches(last, _siblings(parent), n=1, cutoff=0.5)
    return f"; did you mean '{parent}.{near[0]}'?" if near else ""


def _siblings(package: str) -> list[str]:
    try:
        path = getattr(importlib.import_module(package), "__path__", None) if package else None
    except ImportError:
        return []
    return [m.name for m in pkgutil.iter_modules(path)] if path else []


def _attribute(module: ModuleType, name: str) -> Factory:
    found = getattr(module, name, None)
    if not callable(found):
        near = get_close_matches(name, dir(module), n=1)
        raise TeamError(
            f"{module.__name__} has no function {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
        )
    return found


# -- making it


def _called(name: str, factory: Factory, args: Mapping[str, Any]) -> Any:
    try:
        return factory(**args)
    except Exception as error:  # whatever a stranger's factory raises is told as its answer to these arguments
        if not args:
            raise TeamError(f"{name} cannot be made: {type(error).__name__}: {error}") from error
        raise TeamError(f"{name} does not take {dict(args)}: {error}{_hint(factory, args)}") from error


def _hint(factory: Factory, args: Mapping[str, Any]) -> str:
    known = _parameters(factory)
    unknown = [a for a in args if known and a not in known]
    near = [m for a in unknown for m in get_close_matches(a, known, n=1)]
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return f"{meant} It takes {', '.join(sorted(known))}" if unknown else ""


def _parameters(factory: Factory) -> set[str]:
    """The named parameters of a factory and, since most pass theirs on, of the environment inside what it makes."""
    known = _named(factory)
    try:
        inner: Any = factory()
    except Exception:  # noqa: BLE001 - it cannot be made bare either: then there is no more to learn
        return known
    while inner is not None:
        for cls in type(inner).__mro__:
            if not cls.__module__.startswith(("pettingzoo.utils", "gymnasium")) and "__init__" in vars(cls):
                known |= _named(cls)
        inner = next((getattr(inner, a) for a in ("env", "par_env", "aec_env") if hasattr(inner, a)), None)
    return known - {"config", "scenario", "world"}


def _named(function: Callable[..., Any]) -> set[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


# -- looking it over


def _looked_over(name: str, env: Game, seed: int | None) -> None:
    if not getattr(env, "possible_agents", None):
        raise TeamError(f"{name} does not name its possible_agents: every policy must be known before the first reset")
    info = describe(env)
    for place, agent in enumerate(info.possible_agents):
        action, seen = info.action_spaces[agent], info.observation_spaces[agent]
        problem = _action_problem(action) or _observation_problem(seen, action)
        if problem:
            raise TeamError(f"{name}: {agent}'s {problem}")
        if seed is not None:
            action.seed(seed + place)
    cast("Any", env).reset(seed=seed)


def _action_problem(space: spaces.Space[Any]) -> str:
    if not isinstance(space, _TRAINABLE_ACTIONS):
        return f"action space {space} cannot be trained; it must be Discrete or Box"
    if isinstance(space, spaces.Discrete) and space.start != 0:
        return f"action space {space} must begin at 0"
    if isinstance(space, spaces.Box) and not space.is_bounded():
        return f"action space {space} has no bounds to stay within"
    return ""


def _observation_problem(space: spaces.Space[Any], action: spaces.Space[Any]) -> str:
    parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {"observation": space}
    mask = parts.pop("action_mask", None)
    if mask is not None:
        if not isinstance(action, spaces.Discrete):
            return f"action_mask has no meaning for the action space {action}"
        if mask.shape != (int(action.n),):
            return f"action_mask has the shape {mask.shape}, but there are {action.n} actions"
    bad = [k for k, s in parts.items() if not (s.is_np_flattenable or isinstance(s, spaces.Text))]
    if not parts or bad:
        return f"observation space {space} cannot be trained{': part ' + bad[0] if bad else ': it shows nothing'}"
    return ""
