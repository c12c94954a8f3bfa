"""Large batches in parts of similar length, each small enough for one forward pass."""

from collections.abc import Callable

import torch
from torch import Tensor

from policies.lm.layout import PAD, chains
from policies.lm.network import Network


def parts_of(tokens: Tensor, block: int, most: int) -> list[Tensor]:
    """Row numbers of the parts: turns of an episode together, rows of about the same length together.

    Args:
        tokens: ``(B, L)``, padded with PAD.
        block: tokens that every prompt has besides what was seen.
        most: tokens in a part, padding counted in; a part has one episode's turns at least.
    """
    lengths = (tokens != PAD).sum(1).cpu()
    groups = sorted(chains(tokens), key=lambda g: (len(g), int(lengths[g[-1]])))
    parts: list[list[Tensor]] = []
    for group in groups:
        size = int(lengths[group[-1]]) + block * len(group)  # the widest of the part, since groups come in this order
        if not parts or size * (len(parts[-1]) + 1) > most:
            parts.append([])
        parts[-1].append(group)
    return [torch.cat(part) for part in parts]


def in_parts(network: Network, tokens: Tensor, ask: Callable[[Tensor], Tensor]) -> Tensor:
    """What ``ask`` says of the rows, asked in parts and put back into the batch's order.

    Args:
        network: whose pass it is.
        tokens: ``(B, L)`` of the whole batch.
        ask: from row numbers to a tensor with a row each.
    """
    parts = parts_of(tokens, network.block, network.spec.chunk)
    found = torch.cat([ask(at.to(tokens.device)) for at in parts])
    back = torch.empty(len(tokens), dtype=torch.long, device=found.device)
    back[torch.cat(parts).to(found.device)] = torch.arange(len(tokens), device=found.device)
    return found[back]
