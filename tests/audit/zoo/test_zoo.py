"""The audit against a zoo of rewards and teams: every planted fault is found, and no honest one accused."""

import pytest

from rewards.audit import audit
from rewards.audit.registry import CHECKS
from tests.audit.zoo.animals import Animal
from tests.audit.zoo.table import ZOO

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3, 4))]
FAULTY = [a for a in ZOO if a.check]
HONEST = [a for a in ZOO if not a.check]


def named(animal: Animal) -> str:
    return f"{animal.check}: {animal.name}" if animal.check else animal.name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("animal", FAULTY, ids=named)
def test_a_fault_is_found_by_the_check_named_for_it(animal: Animal, seed: int) -> None:
    """Whatever disguise it wears."""
    report = audit(animal.make(seed), [animal.check])
    assert report.errors
    assert all(f.remedy for f in report.errors)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("animal", HONEST, ids=named)
def test_an_honest_animal_is_not_accused(animal: Animal, seed: int) -> None:
    """Of nothing, by no check, not even with a warning."""
    report = audit(animal.make(seed), list(CHECKS))
    assert [(f.check, f.severity, f.message) for f in report.findings if f.severity != "note"] == []


def test_every_check_has_two_disguises() -> None:
    """The zoo holds at least forty animals, twenty of them honest, and two of every kind of fault."""
    for check in CHECKS:
        assert len([a for a in FAULTY if a.check == check]) >= 2, check
    assert len(ZOO) >= 40
    assert len(HONEST) >= 20
