"""A small clinic that every engine test plays: a nurse asks, a doctor treats."""

import dataclasses
from random import Random
from typing import Any, Literal

from envs.session import Session
from runtime.records import Json, ToolCall
from runtime.seams import digest
from runtime.tools import tool
from runtime.types import (
    AgentId,
    Budget,
    Observation,
    Pipeline,
    Role,
    RoundRobin,
    Scenario,
    Simultaneous,
    Team,
    Tool,
)

Ill = Literal["flu", "cold", "gout"]
ILLS: tuple[Ill, ...] = ("flu", "cold", "gout")


class Clinic:
    """What the tools act on."""

    def __init__(self, scenario: Scenario) -> None:
        self.ill: str = scenario.truth["ill"]
        self.given: str | None = None
        self.rounds = 0

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {"given": self.given}, self.given == self.ill


def take_temperature(world: Clinic) -> dict[str, float]:
    """Measure the temperature, in °C."""
    return {"celsius": 39.5 if world.ill == "flu" else 36.8}


def listen(world: Clinic, to: Literal["heart", "lungs"]) -> str:
    """Listen to the heart or the lungs."""
    return "wheezing" if world.ill == "cold" and to == "lungs" else "clear"


def treat(world: Clinic, against: Ill) -> str:
    """Treat the patient, which ends the case."""
    world.given = against
    return "treated"


def weigh(world: Clinic, times: int) -> list[float]:
    """Weigh the patient so many times, in kg."""
    return [70.0] * times


def generate(split: str, seed: int, index: int) -> Scenario:
    rng = Random(digest(split, seed, index))
    ill, age = rng.choice(ILLS), rng.randint(1, 99)
    return Scenario(id=f"{split}-{seed}/{index}", visible={"age": age}, truth={"ill": ill}, seed=rng.randrange(2**31))


NURSE = Role(name="nurse", brief="Find out what it may be.", tools=("take_temperature", "listen"))
DOCTOR = Role(name="doctor", brief="Treat the patient.", tools=("treat",))
TURNS = Pipeline(order=("nurse", "doctor"))


def tools(*more: Tool) -> dict[str, Tool]:
    found = (tool(take_temperature, cost_usd=1.0), tool(listen, cost_usd=2.0), tool(treat, ends=True), *more)
    return {t.name: t for t in found}


def clinic(**changes: Any) -> Team:
    """The team, with whatever a test wants otherwise."""
    team = Team(
        name="clinic", roles=(NURSE, DOCTOR), tools=tools(), turns=TURNS, world=Clinic, generate=generate, repeats=False
    )
    return dataclasses.replace(team, **changes)


def rounds(count: int = 2, **changes: Any) -> Team:
    """Nurse and doctor act in turn."""
    return clinic(**{"turns": RoundRobin(order=("nurse", "doctor"), rounds=count), **changes})


def at_once(count: int = 2, **changes: Any) -> Team:
    """Nurse and doctor act at the same time."""
    return clinic(**{"turns": Simultaneous(order=("nurse", "doctor"), rounds=count), **changes})


def with_budget(role: Role, **limits: Any) -> Role:
    return dataclasses.replace(role, budget=Budget(**limits))


def opened(team: Team | None = None, ill: Ill = "flu", **options: Any) -> Session:
    """A session on a patient who has that, with a clock that stands still."""
    case = Scenario(id="case", visible={"age": 7}, truth={"ill": ill}, seed=5)
    return Session(team or clinic(), case, clock=lambda: 0.0, **options)


def call(name: str, **args: Json) -> ToolCall:
    return ToolCall(tool=name, args=args)


def legal(session: Session, agent: AgentId) -> list[str]:
    """The tools that the agent may call now, each once."""
    seen = session.observe(agent)
    return list(dict.fromkeys(c.tool for c, ok in zip(seen.candidates, seen.mask, strict=True) if ok))


def first_legal(seen: Observation, _rng: Random) -> int:
    return seen.mask.index(True)
