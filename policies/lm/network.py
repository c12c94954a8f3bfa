"""The network of a language model policy: scores of the calls, the value of a prompt, and the frozen reference."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from policies.choice import ILLEGAL
from policies.lm.adapters import Weights
from policies.lm.layout import Packed, block_of, chains, packed, positions, visible
from policies.lm.spec import LMSpec
from policies.lm.tree import call_tree

VALUE_UNITS = 64
"""Hidden units of the critic's own layer."""

KeyValues = list[tuple[Tensor, Tensor]]


class ValueHead(nn.Module):
    """From the last hidden state of a prompt to the return that is still to come."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size, VALUE_UNITS), nn.Tanh(), nn.Linear(VALUE_UNITS, 1))

    def forward(self, hidden: Tensor) -> Tensor:
        """``(B,)`` values, in standardized rewards, of ``(B, D)`` states."""
        return self.net(hidden.float()).squeeze(-1)


class Network(nn.Module):
    """A model (or adapters on a shared one) that scores a role's calls.

    The head of the prompt is encoded once a pass, for all rows; the calls are one tree, and share what they begin with.

    Args:
        spec: what it is.
        weights: the model; what trains of it becomes part of this module.
    """

    def __init__(self, spec: LMSpec, weights: Weights) -> None:
        super().__init__()
        self.spec = spec
        self.weights = weights
        tree = call_tree(spec.calls)
        depth, reach = block_of(len(spec.tail), tree.depth, tree.reach)
        inner = sorted({int(p) for p in tree.parent})
        slots = torch.tensor([inner.index(int(p)) for p in tree.parent])
        asked = torch.tensor([len(spec.tail) + p for p in inner])  # -1, the prompt's end, is the tail's last token
        constants = {
            "head_tokens": torch.tensor(spec.head),
            "tail_tokens": torch.tensor(spec.tail),
            "tree_tokens": tree.tokens,
            "depth": depth,
            "reach": reach,
            "slots": slots,
            "asked": asked,
            "paths": tree.paths,
        }
        for name, value in constants.items():
            self.register_buffer(f"_{name}", value, persistent=False)
        self._kept: tuple[Any, KeyValues] | None = None

    @property
    def block(self) -> int:
        """Tokens that a row has besides what was seen."""
        return len(self._buffer("depth"))

    # -- what is asked of it

    def scores(self, tokens: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
        """Score every call after every prompt.

        Args:
            tokens: ``(B, L)`` what was seen, padded with PAD.
            legal: ``(B, K)``.

        Returns:
            ``(B, K)`` scores, nat, ILLEGAL where a call is not legal; ``(B, D)`` the last hidden state of each prompt.
        """
        with self.weights.used() as model:
            hidden = self._blocks(model, packed(tokens, chains(tokens)), whole=True)
            logits = model.get_output_embeddings()(hidden[:, self._buffer("asked")])
        logp = torch.log_softmax(logits.float(), -1)
        nodes = logp[:, self._buffer("slots"), self._buffer("tree_tokens")]
        sums = nodes @ self._buffer("paths").T
        if self.spec.score == "mean":
            sums = sums / self._buffer("paths").sum(1)
        return sums.masked_fill(~legal.bool(), ILLEGAL), hidden[:, len(self.spec.tail) - 1]

    def prompt_states(self, tokens: Tensor) -> Tensor:
        """``(B, D)`` the last hidden state of each prompt, of ``(B, L)`` tokens."""
        with self.weights.used() as model:
            return self._blocks(model, packed(tokens, chains(tokens)), whole=False)[:, -1]

    @contextmanager
    def as_reference(self) -> Iterator[None]:
        """What is scored in here is scored by the frozen reference."""
        self._kept = None
        with self.weights.reference():
            yield
        self._kept = None

    # -- one pass

    def _buffer(self, name: str) -> Tensor:
        return getattr(self, f"_{name}")

    def _blocks(self, model: Any, pack: Packed, *, whole: bool) -> Tensor:
        """``(B, S, D)`` hidden states of every prompt's block: the tail, and with ``whole`` the tree."""
        size = len(self._buffer("depth")) if whole else len(self.spec.tail)
        block = torch.cat([self._buffer("tail_tokens"), self._buffer("tree_tokens")])[:size]
        hosts, guests = pack.cuts.shape
        rows = pack.hosts.clamp(min=0)
        ids = torch.cat([rows, block.repeat(guests).expand(hosts, -1)], 1)
        head = len(self.spec.head)
        places = positions(pack, head, self._buffer("depth")[:size])
        sight = visible(pack, head, self._buffer("reach")[:size, :size])
        hidden = self._encode(model, ids, places, sight)
        found = hidden[:, pack.hosts.shape[1] :].reshape(hosts * guests, size, -1)
        return found[pack.order]

    def _encode(self, model: Any, ids: Tensor, places: Tensor, sight: Tensor) -> Tensor:
        """``(H, Q, D)`` hidden states after the head."""
        decoder = model.get_decoder()
        if self.spec.checkpointing and torch.is_grad_enabled():
            return self._with_head(decoder, ids, places, sight)
        from transformers import DynamicCache

        rows = len(ids)
        before = DynamicCache(
            [(k.expand(rows, -1, -1, -1), v.expand(rows, -1, -1, -1)) for k, v in self._head(decoder)]
        )
        mask = self._mask(sight, next(iter(before.layers)).keys.dtype)
        return decoder(
            input_ids=ids, attention_mask=mask, position_ids=places, cache=before, use_cache=True
        ).last_hidden_state

    def _with_head(self, decoder: Any, ids: Tensor, places: Tensor, sight: Tensor) -> Tensor:
        """The same with the head in every row, since checkpointed layers keep no keys and values."""
        head = self._buffer("head_tokens")
        rows, size = len(ids), len(head)
        own = torch.ones(size, size, dtype=torch.bool, device=ids.device).tril()
        top = torch.cat([own, own.new_zeros(size, sight.shape[-1] - size)], 1).expand(rows, 1, -1, -1)
        mask = self._mask(torch.cat([top, sight], 2), decoder.dtype)
        front = torch.arange(size, device=ids.device).expand(rows, -1)
        was = decoder.training
        decoder.train()  # layers are checkpointed only then
        out = decoder(
            input_ids=torch.cat([head.expand(rows, -1), ids], 1),
            attention_mask=mask,
            position_ids=torch.cat([front, places], 1),
            use_cache=False,
        )
        decoder.train(was)
        return out.last_hidden_state[:, size:]

    def _head(self, decoder: Any) -> KeyValues:
        """Keys and values of the prompt's head, by layer; kept until a weight changes where no gradient is wanted."""
        if torch.is_grad_enabled():
            return self._read_head(decoder)
        mark = self.weights.mark()
        if self._kept is None or self._kept[0] != mark:
            self._kept = (mark, self._read_head(decoder))
        return self._kept[1]

    def _read_head(self, decoder: Any) -> KeyValues:
        out = decoder(input_ids=self._buffer("head_tokens")[None], use_cache=True)
        return [(layer.keys, layer.values) for layer in out.cache.layers]

    def _mask(self, sight: Tensor, dtype: torch.dtype) -> Tensor:
        return torch.zeros(sight.shape, dtype=dtype, device=sight.device).masked_fill(~sight, torch.finfo(dtype).min)
