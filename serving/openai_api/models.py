"""Which models there are: the roles of each version that a language model plays."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from serving.desk import Desk
from serving.openai_api.asked import NoSuchModel
from serving.versions import Known

KIND = "causal_lm"


@dataclass(frozen=True, slots=True)
class Meant:
    """A model's name, read."""

    team: str
    role: str
    version: str
    """As it was named; empty: the one that a new session gets."""


class Models:
    """The models of all teams.

    Args:
        desk: what versions there are.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._roles: dict[tuple[str, str], tuple[str, ...]] = {}

    def listed(self) -> list[dict[str, Any]]:
        """Every model that new sessions can have. Reads the registry where a version is new: not for an event loop."""
        made: list[dict[str, Any]] = []
        for team in self._desk.versions.registries:
            view = self._desk.views.of(team)
            for known in (v for v in view.known if v.state == "ready"):
                for role in self.roles(team, known):
                    made += [_shown(n, known) for n in _names(team, role, known.alias, view.current)]
        return made

    def roles(self, team: str, known: Known) -> tuple[str, ...]:
        """The roles of a version that a language model plays."""
        if (team, known.hash) not in self._roles:
            self._roles[team, known.hash] = tuple(self._read(team, known.hash))
        return self._roles[team, known.hash]

    def _read(self, team: str, content: str) -> Iterator[str]:
        registry = self._desk.versions.registries[team]
        about = registry.json(content, "team.json") or {}
        for role, policy in about.get("policies", {}).items():
            said = registry.json(content, f"policies/{policy}.json") or {}
            if said.get("kind") == KIND:
                yield role

    def meant(self, name: str) -> Meant:
        """A model's name, matched against what there is. Raises NoSuchModel."""
        for team in self._desk.versions.registries:
            for known in self._desk.views.of(team).known:
                for role in self.roles(team, known):
                    whole = f"{team}/{role}"
                    if name == whole or name.startswith(f"{whole}@"):
                        return Meant(team, role, name[len(whole) + 1 :])
        raise no_model(name)


def no_model(name: str) -> NoSuchModel:
    """The error for a model that there is not."""
    return NoSuchModel("model_not_found", f"there is no model {name!r}; GET /v1/models lists those there are", "model")


def _names(team: str, role: str, alias: str, current: str) -> Iterator[str]:
    if alias == current:
        yield f"{team}/{role}"
    yield f"{team}/{role}@{alias}"


def _shown(name: str, known: Known) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": int(known.at), "owned_by": known.team}
