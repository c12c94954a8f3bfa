"""Minibatches that are fair: every module sees each of its own rows once an epoch, however many rows others have.

RLlib's own iterator goes on until the module with the most rows has had its epochs, and trains the others over and
over meanwhile.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from ray.rllib.evaluation.postprocessing import Postprocessing

from trainers.rllib.fragment import ModuleID


@dataclass(frozen=True, slots=True)
class Minibatch:
    """Some rows of each module that has any left in this epoch."""

    rows: dict[ModuleID, dict[str, Any]]
    last_epoch: bool


class FairMinibatches:
    """Goes over each module's rows ``epochs`` times, in parts of nearly equal size of at most ``size``.

    Args:
        batches: the columns of each module.
        epochs: how often every row is seen.
        size: most rows of a module in a minibatch; None for all of them.
        chance: what the order of rows is drawn from; None to keep it.
    """

    def __init__(
        self,
        batches: Mapping[ModuleID, Mapping[str, Any]],
        *,
        epochs: int,
        size: int | None,
        chance: np.random.Generator | None,
    ) -> None:
        self.batches, self.epochs, self.size, self.chance = batches, epochs, size, chance

    def __iter__(self) -> Iterator[Minibatch]:
        for epoch in range(self.epochs):
            parts = {mid: self._parts(batch) for mid, batch in self.batches.items()}
            for i in range(max(map(len, parts.values()))):
                rows = {mid: p[i] for mid, p in parts.items() if i < len(p)}
                yield Minibatch(rows, epoch == self.epochs - 1)

    def _parts(self, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
        """A module's minibatches of one epoch."""
        count = len(batch[Postprocessing.ADVANTAGES])
        parts = 1 if self.size is None else -(-count // self.size)
        order = torch.from_numpy(self._order(batch, count)).to(batch[Postprocessing.ADVANTAGES].device)
        split = {name: _split(column, order, parts) for name, column in batch.items()}
        return [{name: s[i] for name, s in split.items()} for i in range(parts)]

    def _order(self, batch: Mapping[str, Any], count: int) -> np.ndarray:
        """The order in which a module's rows are gone through."""
        return np.arange(count) if self.chance is None else self.chance.permutation(count)


def _split(column: Any, order: torch.Tensor, parts: int) -> list[Any]:
    """A column in that order, in nearly equal parts."""
    if isinstance(column, Mapping):
        inner = {k: torch.tensor_split(v[order], parts) for k, v in column.items()}
        return [{k: v[i] for k, v in inner.items()} for i in range(parts)]
    return list(torch.tensor_split(column[order], parts))
