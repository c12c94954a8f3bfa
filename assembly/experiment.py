"""The experiment file's model: every key, its type, its default and what it means.

``docs/experiment-file.md`` is written from it.
"""

from typing import Annotated, cast

from pydantic import AfterValidator, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from assembly.fields import Section
from assembly.lm_rules import broken_lm_rules
from assembly.lm_sections import CausalLM, Prompted
from assembly.rules import Broken, broken_rules
from assembly.sections import Encoder, Learning, Policy, Rewards, Scenarios, Scripted, TeamRef
from assembly.training import (
    PPO,
    Checkpoints,
    Collapse,
    Evaluation,
    Gates,
    Limits,
    Resources,
    Stop,
    Telemetry,
)

__all__ = [
    "PPO", "CausalLM", "Collapse", "Encoder", "Experiment", "Learning", "Policy", "Prompted", "Resources", "Rewards",
    "Scripted", "Stop",
]  # fmt: skip


def _redis(value: str) -> str:
    if value == "embedded" or value.startswith(("redis://", "rediss://", "env:")):
        return value
    raise PydanticCustomError("redis", "wants embedded, an address that starts with redis:// or rediss://, or env:NAME")


class Experiment(Section):
    """One experiment: a team, what it learns from, what it is paid for, and how.

    Made directly, it raises if a rule between keys does not hold; validated with a list as context, it puts the broken
    rules there instead.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    """Names the run directory, `runs/NAME/…`: letters, digits, `_`, `.` and `-`."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """All chance in the run comes from it."""
    team: TeamRef
    scenarios: Scenarios = Field(default_factory=Scenarios)
    policies: dict[str, Policy]
    """Policies by name. With no `roles`, a policy decides for the role of its own name."""
    rewards: Rewards = Field(default_factory=Rewards)
    ppo: PPO = Field(default_factory=PPO)
    resources: Resources = Field(default_factory=Resources)
    redis: Annotated[str, AfterValidator(_redis)] = "embedded"
    """The event bus: the bundled server, an address, or env:NAME of the variable that holds one."""
    telemetry: Telemetry = Field(default_factory=Telemetry)
    gates: Gates = Field(default_factory=Gates)
    stop: Stop = Field(default_factory=lambda: Stop(iterations=200))
    evaluation: Evaluation = Field(default_factory=Evaluation)
    checkpoints: Checkpoints = Field(default_factory=Checkpoints)
    collapse: Collapse = Field(default_factory=Collapse)
    limits: Limits = Field(default_factory=Limits)

    @model_validator(mode="after")
    def _obeys_the_rules(self, info: ValidationInfo) -> "Experiment":
        broken = [*broken_rules(self), *broken_lm_rules(self)]
        if info.context is not None:
            cast("list[Broken]", info.context).extend(broken)
        elif broken:
            raise PydanticCustomError("rules", "{text}", {"text": "; ".join(f"{b.key}: {b.message}" for b in broken)})
        return self
