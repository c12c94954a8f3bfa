"""One pass of a model over many prompts of a role: the head read once, turns of an episode in one row."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from policies.lm.adapters import Weights
from policies.lm.layout import chains, packed, positions, visible
from policies.lm.spec import LMSpec

KeyValues = list[tuple[Tensor, Tensor]]


class Reader(nn.Module):
    """A model (or adapters on a shared one) that reads a role's prompts.

    Args:
        spec: what it is.
        weights: the model; what trains of it becomes part of this module.
    """

    def __init__(self, spec: LMSpec, weights: Weights) -> None:
        super().__init__()
        self.spec = spec
        self.weights = weights
        self.constants(head_tokens=torch.tensor(spec.head), tail_tokens=torch.tensor(spec.tail))
        self._kept: tuple[Any, KeyValues] | None = None

    def constants(self, **named: Tensor) -> None:
        """Keep tensors that go where the module goes, and are no part of its state."""
        for name, value in named.items():
            self.register_buffer(f"_{name}", value, persistent=False)

    def constant(self, name: str) -> Tensor:
        """One of them."""
        return getattr(self, f"_{name}")

    @property
    def block(self) -> int:
        """Tokens that a row has besides what was seen."""
        return len(self.spec.tail)

    def prompt_states(self, tokens: Tensor) -> Tensor:
        """``(B, D)`` the last hidden state of each prompt, of ``(B, L)`` tokens."""
        size = len(self.spec.tail)
        with self.weights.used() as model:
            return self.read(model, tokens, self.constant("tail_tokens"), *in_a_row(size, tokens.device))[:, -1]

    @contextmanager
    def as_reference(self) -> Generator[None]:
        """What is read in here is read by the frozen reference."""
        self._kept = None
        with self.weights.reference():
            yield
        self._kept = None

    def read(self, model: Any, tokens: Tensor, block: Tensor, depth: Tensor, reach: Tensor) -> Tensor:
        """``(B, S, D)`` hidden states of every prompt's block.

        Args:
            model: the model in use.
            tokens: ``(B, L)`` what was seen, padded with PAD.
            block: ``(S,)`` tokens after it, or ``(B, S)`` each prompt's own.
            depth: ``(S,)`` their places after what was seen.
            reach: ``(S, S)`` which of them each may look at.
        """
        pack = packed(tokens, chains(tokens))
        hosts, guests = pack.cuts.shape
        size, own = len(depth), block.expand(len(tokens), -1)
        spread = own.new_zeros(hosts * guests, size)
        spread[pack.order] = own
        ids = torch.cat([pack.hosts.clamp(min=0), spread.view(hosts, guests * size)], 1)
        head = len(self.spec.head)
        hidden = self.encode(model, ids, positions(pack, head, depth), visible(pack, head, reach))
        return hidden[:, pack.hosts.shape[1] :].reshape(hosts * guests, size, -1)[pack.order]

    def encode(self, model: Any, ids: Tensor, places: Tensor, sight: Tensor) -> Tensor:
        """``(H, Q, D)`` hidden states after the head."""
        decoder = model.get_decoder()
        if self.spec.checkpointing and torch.is_grad_enabled():
            return self._with_head(decoder, ids, places, sight)
        before = self.head_cache(decoder, len(ids))
        mask = as_mask(sight, next(iter(before.layers)).keys.dtype)
        return decoder(
            input_ids=ids, attention_mask=mask, position_ids=places, cache=before, use_cache=True
        ).last_hidden_state

    def head_cache(self, decoder: Any, rows: int) -> Any:
        """Keys and values of the head, for so many rows: a cache that goes on growing."""
        from transformers import DynamicCache

        return DynamicCache([(k.expand(rows, -1, -1, -1), v.expand(rows, -1, -1, -1)) for k, v in self._head(decoder)])

    def _with_head(self, decoder: Any, ids: Tensor, places: Tensor, sight: Tensor) -> Tensor:
        """The same with the head in every row, since checkpointed layers keep no keys and values."""
        head = self.constant("head_tokens")
        rows, size = len(ids), len(head)
        own = torch.ones(size, size, dtype=torch.bool, device=ids.device).tril()
        top = torch.cat([own, own.new_zeros(size, sight.shape[-1] - size)], 1).expand(rows, 1, -1, -1)
        mask = as_mask(torch.cat([top, sight], 2), decoder.dtype)
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
        out = decoder(input_ids=self.constant("head_tokens")[None], use_cache=True)
        return [(layer.keys, layer.values) for layer in out.cache.layers]


def as_mask(sight: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to attention's scores."""
    return torch.zeros(sight.shape, dtype=dtype, device=sight.device).masked_fill(~sight, torch.finfo(dtype).min)


def in_a_row(size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Depths and reach of so many tokens that simply follow each other."""
    return torch.arange(size, device=device), torch.ones(size, size, dtype=torch.bool, device=device).tril()
