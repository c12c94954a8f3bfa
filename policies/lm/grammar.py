"""What a call may look like, token by token: JSON Schemas of the legal calls, compiled by xgrammar."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from policies.lm.layout import PAD
from policies.lm.loading import load_tokenizer

GRAMMARS = 256
"""Compiled grammars that are remembered: one for each set of legal calls that comes up."""


def schema_of(calls: Sequence[str], arguments: Mapping[str, Any], legal: Sequence[bool]) -> dict[str, Any]:
    """The JSON Schema of the legal calls.

    A tool all of whose candidates are legal may be called with any arguments that its schema allows; one that has only
    some left, with those.

    Args:
        calls: the candidates as text, in their order.
        arguments: the schema of the arguments, of each tool that takes some.
        legal: which candidates are.
    """
    read = [json.loads(c) for c in calls]
    options: dict[str, Any] = {}
    for tool in dict.fromkeys(c["tool"] for c in read):
        own = [(c, ok) for c, ok in zip(read, legal, strict=True) if c["tool"] == tool]
        allowed = [c for c, ok in own if ok]
        if tool in arguments and len(allowed) == len(own):
            options[tool] = _object({"tool": {"const": tool}, "args": inlined(arguments[tool])})
        else:
            options |= {json.dumps(c): _constant(c) for c in allowed}
    return {"anyOf": list(options.values())}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _constant(call: Mapping[str, Any]) -> dict[str, Any]:
    parts: dict[str, Any] = {"tool": {"const": call["tool"]}}
    if "args" in call:
        parts["args"] = _object({k: {"const": v} for k, v in call["args"].items()})
    return _object(parts)


def inlined(schema: Any, definitions: Mapping[str, Any] | None = None) -> Any:
    """A schema without references, titles and defaults, so that it can stand inside another."""
    if isinstance(schema, list):
        return [inlined(s, definitions) for s in schema]
    if not isinstance(schema, dict):
        return schema
    known: Mapping[str, Any] = {**(definitions or {}), **schema.get("$defs", {})}
    if "$ref" in schema:
        return inlined(known[str(schema["$ref"]).rsplit("/", 1)[-1]], known)
    dropped = ("$defs", "title", "default")
    kept = {k: v for k, v in schema.items() if k not in dropped or (isinstance(v, dict) and k != "$defs")}
    return {k: inlined(v, known) for k, v in kept.items()}


class CallGrammar:
    """Which tokens may come next, for calls of a role.

    Args:
        path: directory of the model, whose tokenizer says what a token is.
        calls: the candidates as text.
        arguments: JSON of the arguments' schemas by tool.
        size: how many logits the model gives.
    """

    def __init__(self, path: str, calls: Sequence[str], arguments: str, size: int) -> None:
        import xgrammar

        self._calls, self._arguments, self.size = tuple(calls), json.loads(arguments), size
        tokenizer = load_tokenizer(path)
        self.end = int(tokenizer.eos_token_id)
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=size, stop_token_ids=[self.end])
        self._compiler: Any = xgrammar.GrammarCompiler(info)
        self._compiled = lru_cache(maxsize=GRAMMARS)(self._compile)

    def _compile(self, legal: tuple[bool, ...]) -> Any:
        schema = schema_of(self._calls, self._arguments, legal)
        return self._compiler.compile_json_schema(json.dumps(schema), any_whitespace=False)

    def matchers(self, legal: np.ndarray[Any, Any]) -> list[Any]:
        """A fresh matcher for each row of ``(B, K)``."""
        import xgrammar

        return [xgrammar.GrammarMatcher(self._compiled(tuple(map(bool, row)))) for row in legal]

    def allowed(self, matchers: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """``(B, V)`` the tokens that may come next; where a call is complete, all, and none of them counts."""
        import xgrammar

        bits = xgrammar.allocate_token_bitmask(len(matchers), self.size)
        bits.fill_(-1)
        for row, matcher in enumerate(matchers):
            if not matcher.is_terminated():
                matcher.fill_next_token_bitmask(bits, row)
        return np.unpackbits(bits.numpy().view(np.uint8), axis=1, bitorder="little")[:, : self.size].astype(bool)

    def along(self, legal: Tensor, calls: Tensor) -> Tensor:
        """``(B, T, V)`` what was allowed at each token of calls ``(B, T)``, padded with PAD."""
        matchers = self.matchers(legal.cpu().numpy())
        steps: list[np.ndarray[Any, Any]] = []
        for at in calls.cpu().numpy().T:
            steps.append(self.allowed(matchers))
            for matcher, token in zip(matchers, at.tolist(), strict=True):
                if token != PAD and not matcher.accept_token(token):
                    raise ValueError(f"token {token} of a call is none that the grammar allows")
        return torch.from_numpy(np.stack(steps, 1)).to(calls.device)
