"""Where tokens stand in one forward pass, and what each may look at.

A row is ``[seen | block | block …]``: what an agent has seen, padded on the right, and for each of its turns a block of
the prompt's tail and the tree of calls. A block looks at the head, at the first ``cut`` tokens that were seen, and at
what leads to it in the block. So every call of every turn is scored as if it stood alone behind its own prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

PAD = -1
"""Marks places of a row that hold no token."""

TOGETHER = 16
"""Prompts that share a row, at most: attention's cost grows with the square of a row's length."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Prompts that go through a model together: some of them are the beginning of another."""

    hosts: Tensor
    """(H, L) int64 tokens, padded with PAD."""
    cuts: Tensor
    """(H, G) int64: how much of the host each guest has seen; PAD where there is no guest."""
    order: Tensor
    """(B,) int64: each prompt's place among the guests, counted row by row."""


def alone(tokens: Tensor) -> Packed:
    """Every prompt in a row of its own. ``tokens``: (B, L), padded with PAD."""
    lengths = (tokens != PAD).sum(1)
    return Packed(
        tokens[:, : _longest(tokens)].long(), lengths[:, None], torch.arange(len(tokens), device=tokens.device)
    )


def chains(tokens: Tensor) -> list[Tensor]:
    """Row numbers of the prompts, grouped: each prompt in a group is the beginning of the next one.

    The turns of an agent's episode are such a group, wherever they stand in the batch. ``tokens``: (B, L), PAD behind.
    """
    rows = tokens[:, : _longest(tokens)].cpu().numpy()
    order = np.lexsort(rows.T[::-1])  # PAD sorts first, so a beginning stands right before what goes on from it
    rows = rows[order]
    goes_on = ((rows[:-1] == rows[1:]) | (rows[:-1] == PAD)).all(1)
    cuts = np.flatnonzero(~goes_on) + 1
    groups = (torch.from_numpy(part) for part in np.split(order, cuts))
    return [piece for group in groups for piece in group.split(TOGETHER)]


def _longest(tokens: Tensor) -> int:
    return max(1, int((tokens != PAD).sum(1).max())) if len(tokens) else 1


def packed(tokens: Tensor, groups: Sequence[Tensor]) -> Packed:
    """Prompts of a group share a row. ``groups``: as ``chains`` gave them, of all rows of ``tokens``."""
    device = tokens.device
    lengths = (tokens != PAD).sum(1)
    width = max(map(len, groups))
    cuts = lengths.new_full((len(groups), width), PAD)
    order = torch.empty_like(lengths)
    for g, members in enumerate(groups):
        at = members.to(device)
        cuts[g, : len(members)] = lengths[at]
        order[at] = torch.arange(len(members), device=device) + g * width
    hosts = torch.stack([m[-1] for m in groups]).to(device)
    return Packed(tokens[hosts, : _longest(tokens)].long(), cuts, order)


def positions(pack: Packed, head: int, depth: Tensor) -> Tensor:
    """(H, Q) the place of each token in its own prompt. ``depth``: (S,) places of a block's tokens after the cut."""
    seen = torch.arange(pack.hosts.shape[1], device=pack.hosts.device).expand(pack.hosts.shape)
    blocks = pack.cuts.clamp(min=0)[:, :, None] + depth
    return head + torch.cat([seen, blocks.flatten(1)], 1)


def visible(pack: Packed, head: int, reach: Tensor) -> Tensor:
    """(H, 1, Q, head + Q) bool: what each token may look at. ``reach``: (S, S) within a block."""
    hosts, size = pack.hosts.shape
    guests, block = pack.cuts.shape[1], len(reach)
    device = pack.hosts.device
    places = torch.arange(size, device=device)
    causal = (places[None, :] <= places[:, None]).expand(hosts, size, size)
    seen = (places < pack.cuts[:, :, None]).repeat_interleave(block, 1)
    among = torch.block_diag(*[reach.to(torch.int8)] * guests).bool()
    left = torch.cat([causal, seen], 1)
    blind = torch.zeros(hosts, size, guests * block, dtype=torch.bool, device=device)
    right = torch.cat([blind, among.expand(hosts, -1, -1)], 1)
    front = torch.ones(hosts, size + guests * block, head, dtype=torch.bool, device=device)
    return torch.cat([front, left, right], 2)[:, None]


def block_of(tail: int, tree_depth: Tensor, tree_reach: Tensor) -> tuple[Tensor, Tensor]:
    """Depths (S,) and reach (S, S) of a block: a tail of so many tokens, then the tree."""
    device = tree_depth.device
    depth = torch.cat([torch.arange(tail, device=device), tail + tree_depth])
    reach = torch.zeros(len(depth), len(depth), dtype=torch.bool, device=device)
    reach[:tail, :tail] = torch.ones(tail, tail, dtype=torch.bool, device=device).tril()
    reach[tail:, :tail] = True
    reach[tail:, tail:] = tree_reach
    return depth, reach
