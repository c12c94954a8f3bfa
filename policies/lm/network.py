"""The networks of ``mode: choose``: scores of the calls, and the value of a prompt."""

import torch
from torch import Tensor, nn

from policies.choice import ILLEGAL
from policies.lm.adapters import Weights
from policies.lm.layout import block_of
from policies.lm.reading import Reader
from policies.lm.spec import LMSpec
from policies.lm.tree import call_tree

VALUE_UNITS = 64
"""Hidden units of the critic's own layer."""


class ValueHead(nn.Module):
    """From a hidden state to the return that is still to come."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size, VALUE_UNITS), nn.Tanh(), nn.Linear(VALUE_UNITS, 1))

    def forward(self, hidden: Tensor) -> Tensor:
        """``(…)`` values, in standardized rewards, of ``(…, D)`` states."""
        return self.net(hidden.float()).squeeze(-1)


class Network(Reader):
    """Scores a role's calls. They are one tree, and share what they begin with."""

    def __init__(self, spec: LMSpec, weights: Weights) -> None:
        super().__init__(spec, weights)
        tree = call_tree(spec.calls)
        depth, reach = block_of(len(spec.tail), tree.depth, tree.reach)
        inner = sorted({int(p) for p in tree.parent})
        self.constants(
            block=torch.cat([self.constant("tail_tokens"), tree.tokens]),
            tree=tree.tokens,
            depth=depth,
            reach=reach,
            slots=torch.tensor([inner.index(int(p)) for p in tree.parent]),
            asked=torch.tensor([len(spec.tail) + p for p in inner]),  # -1, the prompt's end, is the tail's last token
            paths=tree.paths,
        )

    @property
    def block(self) -> int:
        """Tokens that a row has besides what was seen."""
        return len(self.constant("depth"))

    def scores(self, tokens: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
        """Score every call after every prompt.

        Args:
            tokens: ``(B, L)`` what was seen, padded with PAD.
            legal: ``(B, K)``.

        Returns:
            ``(B, K)`` scores, nat, ILLEGAL where a call is not legal; ``(B, D)`` the last hidden state of each prompt.
        """
        whole = (self.constant(n) for n in ("block", "depth", "reach"))
        with self.weights.used() as model:
            hidden = self.read(model, tokens, *whole)
            logits = model.get_output_embeddings()(hidden[:, self.constant("asked")])
        logp = torch.log_softmax(logits.float(), -1)
        nodes = logp[:, self.constant("slots"), self.constant("tree")]
        sums = nodes @ self.constant("paths").T
        if self.spec.score == "mean":
            sums = sums / self.constant("paths").sum(1)
        return sums.masked_fill(~legal.bool(), ILLEGAL), hidden[:, len(self.spec.tail) - 1]
