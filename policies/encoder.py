"""The encoder policy's networks: features in, scores of the candidates and a value out."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from policies.choice import ILLEGAL

SMALL = 0.01
"""Scale of the last policy layer at the start: all candidates begin about equally likely (Andrychowicz et al. 2021)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderSpec:
    """The shape of an encoder policy."""

    features: int
    """Length of the feature vector."""
    state: int
    """Length of what the critic sees: the same, or everybody's features side by side."""
    outputs: int
    """Scores: one a candidate, or a distribution's parameters where actions are not a single choice."""
    hidden: tuple[int, ...] = (64, 64)
    activation: Literal["tanh", "relu"] = "tanh"
    gaussian: bool = False
    """The outputs are means; their log standard deviations are parameters of their own."""

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def mlp(inputs: int, hidden: tuple[int, ...], outputs: int, activation: str) -> nn.Sequential:
    """Linear layers with the activation between them."""
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [nn.Linear(inputs, size), nn.Tanh() if activation == "tanh" else nn.ReLU()]
        inputs = size
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


class Actor(nn.Module):
    """Scores the candidates."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.net = mlp(spec.features, spec.hidden, spec.outputs, spec.activation)
        last = self.net[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.mul_(SMALL)
            last.bias.zero_()
        self.log_std = nn.Parameter(torch.zeros(spec.outputs)) if spec.gaussian else None

    def forward(self, features: Tensor, legal: Tensor | None = None) -> Tensor:
        """``(B, K)`` scores of ``(B, D)`` features, ILLEGAL where ``legal`` (B, K) is false or 0.

        Where actions are not a single choice: ``(B, outputs)`` parameters, with the log standard deviations of a
        Gaussian appended.
        """
        scores: Tensor = self.net(features)
        if self.log_std is not None:
            return torch.cat([scores, self.log_std.expand_as(scores)], -1)
        return scores if legal is None else scores.masked_fill(~legal.bool(), ILLEGAL)


class Critic(nn.Module):
    """Estimates the return that is still to come."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.net = mlp(spec.state, spec.hidden, 1, spec.activation)

    def forward(self, state: Tensor) -> Tensor:
        """``(B,)`` values, in standardized rewards, of ``(B, S)`` states."""
        return self.net(state).squeeze(-1)
