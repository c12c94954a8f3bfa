"""What an animal of the zoo is, and the cages that they are kept in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rewards.audit.material import Material

Makes = Callable[[int], Material]
"""Makes the material anew, with a seed."""


@dataclass(frozen=True, slots=True)
class Animal:
    """A reward, a team or an environment, honest or with one planted fault."""

    name: str
    make: Makes
    check: str = ""
    """The check that must find it; empty: it is honest, and none may accuse it."""


def honest(animals: Mapping[str, Makes]) -> list[Animal]:
    """Animals without a fault."""
    return [Animal(name, make) for name, make in animals.items()]


def faulty(check: str, animals: Mapping[str, Makes]) -> list[Animal]:
    """Animals that one check must find."""
    return [Animal(name, make, check) for name, make in animals.items()]
