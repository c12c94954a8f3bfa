"""A team of two with effects outside, and whoever plays it with Temporal: here, or as a process that gets killed.

python -m tests.coordinator.shop STORE LEDGER ADDRESS CASES
"""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Literal

from assembly.live import LiveRole
from assembly.stage_live import Place, agent_specs
from assembly.stage_temporal import TemporalStage, told_specs
from assembly.versions import Version
from policies.playing import RulePolicy
from rewards.mix import Mix
from runtime.actor import Agent, AgentSpec, Reply
from runtime.bus import Event
from runtime.records import Json, ToolCall
from runtime.store import history, open_store
from runtime.tools import tool
from runtime.types import HAND_OVER, Observation, Outside, Pipeline, Role, Scenario, Team

WANTED = ("tea", "salt", "rice")


class Cart:
    """The world of one session."""

    def __init__(self, scenario: Scenario) -> None:
        self.case = scenario.id

    def outcome(self) -> tuple[dict[str, Json], bool]:
        return {"case": self.case}, True


def shop(ledger: Path) -> Team:
    """The world outside is a file: a line an order or cancellation, with its idempotency key."""

    def order(cart: Cart, what: Literal["tea", "salt", "rice"], key: str = "") -> str:
        """Order something."""
        _note(ledger, f"order {key} {what}")
        return what

    def cancel(cart: Cart, answer: Json, what: str, key: str = "") -> None:
        _note(ledger, f"cancel {key} {what}")

    def approve(cart: Cart) -> str:
        """Approve the order, which ends the case."""
        return "approved"

    return Team(
        name="shop",
        roles=(Role(name="buyer", brief="", tools=("order",)), Role(name="boss", brief="", tools=("approve",))),
        tools={
            "order": tool(order, outside=Outside(timeout_s=5, key="key", idempotent=True, undo=cancel)),
            "approve": tool(approve, ends=True),
        },
        turns=Pipeline(order=("buyer", "boss")),
        world=Cart,
    )


def _note(ledger: Path, line: str) -> None:
    with ledger.open("a") as file:
        file.write(f"{line}\n")


def buys(seen: Observation, chance: Random) -> ToolCall:
    done = sum(s.kind == "answer" for s in seen.seen)
    return ToolCall(tool="order", args={"what": WANTED[done]}) if done < 3 else ToolCall(tool=HAND_OVER)


def approves(seen: Observation, chance: Random) -> ToolCall:
    if "never" in seen.text:
        raise OSError("the boss is not in")
    return ToolCall(tool="approve")


def version_of(ledger: Path) -> Version:
    seats = {"buyer": RulePolicy(buys), "boss": RulePolicy(approves)}
    return Version(name="v", team=shop(ledger), seats=seats, judge=Mix([]))


def case(name: str) -> Scenario:
    return Scenario(id=name, visible={"note": name}, truth={})


@contextmanager
def played(
    store: str, version: Version, address: str, tell: Callable[[Event, Callable[[Event], Reply]], Reply] | None = None
) -> Generator[TemporalStage]:
    """A stage with agents in this process; ``tell`` is between it and them."""
    kept = open_store(store)
    specs = agent_specs(Place(redis="", store=store), Path(), version)
    agents: dict[str, Agent] = {}
    for role, spec in specs.items():
        role_of = LiveRole(version, role, lambda s: kept.read(lambda c: history.of_session(c, version.team.name, s)))
        (told,) = (t for t in told_specs({role: spec}, version))
        agents[role] = Agent(_made(told, role_of))
    try:

        def direct(event: Event) -> Reply:
            return agents[event.to].tell(event)

        with TemporalStage(store, version, (lambda e: tell(e, direct)) if tell else direct, address) as stage:
            yield stage
    finally:
        for agent in agents.values():
            agent.stop()
        kept.close()


def _made(told: AgentSpec, role: LiveRole) -> AgentSpec:
    return replace(told, make=replace(told.make, make=lambda: role))


def main() -> None:
    store, ledger, address, count = sys.argv[1:]
    version = version_of(Path(ledger))
    with played(store, version, address) as stage:
        for ended in stage.run([case(f"case-{k}") for k in range(int(count))], silence_s=100):
            print(ended.session, ended.success, flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
