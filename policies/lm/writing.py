"""The network of ``mode: generate``: a call written token by token, under the grammar of what is legal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from policies.choice import choose
from policies.lm.adapters import Weights
from policies.lm.grammar import CallGrammar
from policies.lm.layout import PAD
from policies.lm.loading import load_tokenizer
from policies.lm.reading import Reader, as_mask, in_a_row
from policies.lm.spec import LMSpec
from runtime.seams import uniform

Key = tuple[Any, ...]
"""(seed, scenario, agent, turn): with the token's number, what chance is drawn from."""


@dataclass(frozen=True, slots=True)
class Written:
    """Calls of a batch."""

    tokens: np.ndarray[Any, np.dtype[np.int32]]
    """(B, T), padded with PAD; the last one of a complete call is the end mark."""
    logp: np.ndarray[Any, np.dtype[np.float32]]
    """(B, T) logarithm of each token's probability among those allowed, nat; 0 behind the end."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What the network says along calls that are given."""

    logp: Tensor
    """(B, T) of each token among those allowed, nat; 0 behind the end."""
    entropy: Tensor
    """(B, T) of each token's distribution, nat; 0 behind the end."""
    hidden: Tensor
    """(B, T, D) the state from which each token is written."""


class Writer(Reader):
    """Writes calls."""

    def __init__(self, spec: LMSpec, weights: Weights) -> None:
        super().__init__(spec, weights)
        with weights.used() as model:
            size = int(model.get_output_embeddings().weight.shape[0])
        self.grammar = CallGrammar(spec.path, spec.texts, spec.arguments, size)

    @property
    def block(self) -> int:
        """Tokens that a row has besides what was seen."""
        return len(self.spec.tail) + self.spec.longest

    def follow(self, tokens: Tensor, legal: Tensor, calls: Tensor) -> Followed:
        """Go along given calls.

        Args:
            tokens: ``(B, L)`` what was seen, padded with PAD.
            legal: ``(B, K)`` which candidates are.
            calls: ``(B, T)`` tokens, padded with PAD.
        """
        calls = calls[:, : max(1, int((calls != PAD).sum(1).max()))].long()
        tail = self.constant("tail_tokens").expand(len(calls), -1)
        block = torch.cat([tail, calls[:, :-1].clamp(min=0)], 1)
        with self.weights.used() as model:
            hidden = self.read(model, tokens, block, *in_a_row(block.shape[1], tokens.device))[:, tail.shape[1] - 1 :]
            logits = model.get_output_embeddings()(hidden).float()
        logp = torch.log_softmax(logits.masked_fill(~self.grammar.along(legal, calls), -torch.inf), -1)
        real = calls != PAD
        taken = logp.gather(-1, calls.clamp(min=0)[..., None]).squeeze(-1).masked_fill(~real, 0.0)
        entropy = -(logp.exp() * logp.masked_fill(logp == -torch.inf, 0.0)).sum(-1).masked_fill(~real, 0.0)
        return Followed(taken, entropy, hidden)

    @torch.no_grad()
    def write(self, tokens: Tensor, legal: Tensor, keys: Sequence[Key] | None) -> Written:
        """Write a call after every prompt; the likeliest tokens where there are no keys."""
        rows, limit = len(tokens), self.spec.longest
        matchers = self.grammar.matchers(legal.cpu().numpy())
        written, logp = np.full((rows, limit), PAD, np.int32), np.zeros((rows, limit), np.float32)
        with self.weights.used() as model:
            pen = _Pen(self, model, tokens)
            for place in range(limit):
                scores = np.where(self.grammar.allowed(matchers), pen.logits(), -np.inf)
                picked, sure = _picked(scores, keys, place)
                going = np.array([not m.is_terminated() for m in matchers])
                written[going, place], logp[going, place] = picked[going], sure[going]
                for row in np.flatnonzero(going):
                    matchers[row].accept_token(int(picked[row]))
                if all(m.is_terminated() for m in matchers) or place == limit - 1:
                    break
                pen.move(picked)
        return Written(written, logp)

    def spoken(self, calls: np.ndarray[Any, Any]) -> list[str]:
        """The calls as text."""
        tokenizer = load_tokenizer(self.spec.path)
        return [tokenizer.decode([t for t in row if t not in (PAD, self.grammar.end)]) for row in calls.tolist()]


class _Pen:
    """Where the writing stands: the keys and values of everything read and written so far."""

    def __init__(self, writer: Writer, model: Any, tokens: Tensor) -> None:
        self._decoder, self._out = model.get_decoder(), model.get_output_embeddings()
        lengths = (tokens != PAD).sum(1)
        seen = tokens[:, : max(1, int(lengths.max()))].long()
        tail = writer.constant("tail_tokens")
        rows, size = seen.shape
        places = torch.arange(size, device=seen.device)
        depth, reach = in_a_row(len(tail), seen.device)
        head = len(writer.spec.head)
        self._cache = writer.head_cache(self._decoder, rows)
        front = torch.ones(rows, head, dtype=torch.bool, device=seen.device)
        among = places[None, :] <= places[:, None]
        known = places < lengths[:, None]
        top = torch.cat([among.expand(rows, -1, -1), among.new_zeros(rows, size, len(tail))], 2)
        low = torch.cat([known[:, None].expand(-1, len(tail), -1), reach.expand(rows, -1, -1)], 2)
        body = torch.cat([top, low], 1)
        sight = torch.cat([front[:, None].expand(-1, body.shape[1], -1), body], 2)[:, None]
        self._sight = torch.cat([front, known, torch.ones_like(front[:, :1]).expand(-1, len(tail))], 1)
        self._place = head + lengths + len(tail)
        at = torch.cat([(head + places).expand(rows, -1), head + lengths[:, None] + depth], 1)
        self._forward(torch.cat([seen.clamp(min=0), tail.expand(rows, -1)], 1), at, sight)

    def _forward(self, ids: Tensor, places: Tensor, sight: Tensor) -> None:
        dtype = self._decoder.dtype
        mask = as_mask(sight, dtype)
        out = self._decoder(input_ids=ids, attention_mask=mask, position_ids=places, cache=self._cache, use_cache=True)
        self._logits = self._out(out.last_hidden_state[:, -1]).float()

    def logits(self) -> np.ndarray[Any, Any]:
        """(B, V) for the token that comes next."""
        return self._logits.cpu().numpy()

    def move(self, picked: np.ndarray[Any, Any]) -> None:
        """Go on by one token in every row."""
        self._sight = torch.cat([self._sight, torch.ones_like(self._sight[:, :1])], 1)
        ids = torch.from_numpy(picked.astype(np.int64)).to(self._place.device)[:, None]
        self._forward(ids, self._place[:, None], self._sight[:, None, None])
        self._place = self._place + 1


def _picked(
    scores: np.ndarray[Any, Any], keys: Sequence[Key] | None, place: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(B,) tokens drawn, and the logarithms of their probabilities."""
    shifted = (scores - scores.max(1, keepdims=True)).astype(np.float64)
    total = np.log(np.exp(shifted).sum(1))
    if keys is None:
        picked = shifted.argmax(1)
    else:
        picked = choose(scores.astype(np.float32), np.array([uniform(*key, place) for key in keys]))
    return picked, shifted[np.arange(len(picked)), picked] - total
