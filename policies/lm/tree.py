"""A role's calls as a tree of tokens: what they begin with in common is read once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CallTree:
    """N nodes for the tokens of K calls; every node comes after its parent."""

    tokens: Tensor
    """(N,) int64."""
    depth: Tensor
    """(N,) int64, tokens between the end of the prompt and the node."""
    parent: Tensor
    """(N,) int64, the node before; -1 where that is the prompt's last token."""
    reach: Tensor
    """(N, N) bool: which nodes a node may look at, itself among them."""
    paths: Tensor
    """(K, N) float32, 1 where a node belongs to the call."""

    @property
    def lengths(self) -> Tensor:
        """(K,) float32, tokens of each call."""
        return self.paths.sum(1)


def call_tree(calls: Sequence[Tokens]) -> CallTree:
    """The tree of these calls. Raises ValueError where one is empty, or is another or its beginning."""
    nodes: dict[Tokens, int] = {}
    for call in calls:
        for end in range(1, len(call) + 1):
            nodes.setdefault(call[:end], len(nodes))
    whole = [nodes.get(c) for c in calls]
    ways = list(nodes)
    inner = {w[:-1] for w in ways}
    if None in whole or len(set(whole)) < len(whole) or any(c in inner for c in calls):
        raise ValueError("a call has no tokens, or is the same as another or its beginning")
    count = len(ways)
    reach, paths = torch.zeros(count, count, dtype=torch.bool), torch.zeros(len(calls), count)
    for way, node in nodes.items():
        reach[node, [nodes[way[:end]] for end in range(1, len(way) + 1)]] = True
    for place, call in enumerate(calls):
        paths[place, [nodes[call[:end]] for end in range(1, len(call) + 1)]] = 1.0
    return CallTree(
        tokens=torch.tensor([w[-1] for w in ways]),
        depth=torch.tensor([len(w) - 1 for w in ways]),
        parent=torch.tensor([nodes[w[:-1]] if len(w) > 1 else -1 for w in ways]),
        reach=reach,
        paths=paths,
    )
