"""Teammates that are frozen language models: each call is asked for, and what the asking took is told."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from policies.lm.grammar import schema_of
from policies.lm.loading import model_directory
from policies.lm.prompt import RoleText
from policies.playing import Choice, Turn
from runtime.errors import RepertoryError
from runtime.llm import Message, Model, ModelSettings, Price, Request, Unavailable, build
from runtime.llm.limits import Limits
from runtime.llm.remembering import Remembering
from runtime.llm.replies import kept
from runtime.llm.settings import LocalTransformers, OpenAICompatible, identity
from runtime.seams import digest


class TeammateUnavailable(RepertoryError):
    """A prompted teammate gave no answer: whose turn it was, and why. No call is made up in its place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """Which model is asked, and how."""

    model: str
    base_url: str | None = None
    key_variable: str = "OPENAI_API_KEY"
    usd_per_million_in: float = 0.0
    usd_per_million_out: float = 0.0
    temperature: float = 0.0
    answer_tokens: int = 128
    timeout_s: float = 60.0
    folder: str = ""
    """What a relative path of a model starts from."""

    def settings(self) -> ModelSettings:
        """The model as the runtime asks it. Raises WeightsMissing."""
        limits = Limits(total_s=self.timeout_s)
        if self.base_url is None:
            return ModelSettings(
                model=LocalTransformers(path=model_directory(self.model, Path(self.folder))), limits=limits
            )
        price = Price(usd_per_million_in=self.usd_per_million_in, usd_per_million_out=self.usd_per_million_out)
        remote = OpenAICompatible(model=self.model, base_url=self.base_url, key_variable=self.key_variable, price=price)
        return ModelSettings(model=remote, limits=limits)

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


class PromptedPolicy:
    """A model that is asked for each of a role's calls."""

    def __init__(self, asking: Asking, text: RoleText) -> None:
        self.asking, self.text = asking, text

    @cached_property
    def model(self) -> Model | Remembering:
        """The model, in this process; where replies are kept, one that is not asked twice."""
        settings, replies = self.asking.settings(), kept()
        made = build(settings)
        return made if replies is None else Remembering(made, identity(settings.model), replies)

    def decide(self, turns: Sequence[Turn], greedy: bool) -> Sequence[Choice]:
        """The model's calls, as it wrote them. Raises TeammateUnavailable."""
        return [self._one(t, greedy) for t in turns]

    def _one(self, turn: Turn, greedy: bool) -> Choice:
        legal = [bool(ok) for ok in turn.seen["action_mask"]]
        request = Request(
            messages=(Message("system", self.text.system), Message("user", turn.seen["text"])),
            max_tokens=self.asking.answer_tokens,
            temperature=0.0 if greedy else self.asking.temperature,
            seed=digest("asked", *turn.key, turn.agent, turn.turn) % 2**31,
            schema=schema_of(self.text.calls, json.loads(self.text.arguments), legal),
        )
        answer = self.model.ask(request)
        if isinstance(answer, Unavailable):
            raise TeammateUnavailable(f"{turn.agent} ({self.asking.model}): {answer.why}")
        return Choice(call_in(answer.text), spent=answer.spent)

    def __getstate__(self) -> dict[str, Any]:
        return {"asking": self.asking, "text": self.text}


def call_in(answer: str) -> str:
    """The first JSON object of an answer, whatever is said around it; the whole answer where there is none."""
    start = answer.find("{")
    while start >= 0:
        try:
            found, _ = json.JSONDecoder().raw_decode(answer, start)
        except ValueError:
            start = answer.find("{", start + 1)
            continue
        return json.dumps(found)
    return answer


def prompted_state(policy: object) -> dict[str, Any]:
    """All of a prompted policy as JSON, with its kind. Keys of endpoints are no part of it."""
    assert isinstance(policy, PromptedPolicy)
    told = policy.text
    return {
        "kind": "prompted",
        "asking": {**policy.asking.as_json(), "folder": ""},
        "system": told.system,
        "calls": list(told.calls),
        "arguments": told.arguments,
    }


def prompted_from(state: Mapping[str, Any]) -> PromptedPolicy:
    """The policy that ``state`` was taken from."""
    return PromptedPolicy(
        Asking(**state["asking"]), RoleText(state["system"], tuple(state["calls"]), state["arguments"])
    )
