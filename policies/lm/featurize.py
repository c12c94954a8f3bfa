"""From an environment's observations to the tokens that a language model reads: the same code wherever a team runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from policies.featurize import Arrays
from policies.lm.layout import PAD
from policies.lm.loading import load_tokenizer
from policies.lm.prompt import Prompter, RoleText

TOKENS = "tokens"
"""``(B, room)`` int32: what each agent has seen, padded with PAD; the prompt's head and tail are the network's."""


class PromptFeatures:
    """A role's prompts, as tokens of a model."""

    def __init__(self, path: str, text: RoleText, max_tokens: int, start: str = "") -> None:
        """``start``: the file that a warm start leaves the policy's weights in; empty where there is none."""
        self.path, self.text, self.max_tokens, self.start = path, text, max_tokens, start
        self.prompter = Prompter(load_tokenizer(path), text, max_tokens)

    @property
    def size(self) -> int:
        """Tokens of what an agent has seen, at most."""
        return self.prompter.room

    def __call__(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int32]]:
        """``(B, room)`` tokens of B texts."""
        out = np.full((len(texts), self.size), PAD, np.int32)
        for row, text in zip(out, texts, strict=True):
            tokens = self.prompter(text)
            row[: len(tokens)] = tokens
        return out

    def state(self) -> dict[str, Any]:
        """All of it as JSON, with its ``kind``; the tokenizer lies in the model's directory."""
        return {
            "kind": "prompts",
            "path": self.path,
            "system": self.text.system,
            "calls": list(self.text.calls),
            "arguments": self.text.arguments,
            "max_tokens": self.max_tokens,
            "start": self.start,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes load the tokenizer themselves."""
        return PromptFeatures, (self.path, self.text, self.max_tokens, self.start)


def prompts_from_state(state: Mapping[str, Any]) -> PromptFeatures:
    """The features that ``state`` was taken from."""
    text = RoleText(state["system"], tuple(state["calls"]), state["arguments"])
    return PromptFeatures(state["path"], text, state["max_tokens"], state["start"])


class PromptFeaturizer:
    """For teams: observations are ``{"text": str, "action_mask": (K,)}``."""

    def __init__(self, features: PromptFeatures) -> None:
        self.features = features

    def __call__(self, observations: Sequence[Mapping[str, Any]]) -> Arrays:
        """A row an observation."""
        return {
            TOKENS: self.features([o["text"] for o in observations]),
            "action_mask": np.array([o["action_mask"] for o in observations]) > 0,
        }
