"""A language model as it is played, wherever a team runs."""

from collections.abc import Sequence

import numpy as np
import torch

from policies.choice import choose, log_probabilities
from policies.lm.adapters import Adapted, Owned, Weights
from policies.lm.batches import in_parts
from policies.lm.featurize import TOKENS, PromptFeaturizer
from policies.lm.network import Network
from policies.lm.spec import LMSpec
from policies.playing import Choice, Turn


def weights_of(spec: LMSpec) -> Weights:
    """The model of a spec, or fresh adapters on it."""
    made = Owned(spec.path, spec.dtype) if spec.lora is None else Adapted(spec.path, spec.lora, spec.dtype)
    if spec.checkpointing:
        with made.used() as model:
            model.activation_checkpointing_enable({"use_reentrant": False})
    return made


def network_of(spec: LMSpec) -> Network:
    """The network of a spec, with the model's weights and fresh adapters if it has any."""
    return Network(spec, weights_of(spec))


class LMPolicy:
    """A language model with frozen weights that chooses among its role's calls."""

    def __init__(self, network: Network, featurize: PromptFeaturizer) -> None:
        self.network, self.featurize = network.eval(), featurize

    @torch.no_grad()
    def decide(self, turns: Sequence[Turn], greedy: bool) -> Sequence[Choice]:
        """A choice a turn, by one forward pass."""
        arrays = self.featurize([t.seen for t in turns])
        device = next(self.network.parameters()).device
        tokens = torch.from_numpy(arrays[TOKENS]).to(device)
        legal = torch.from_numpy(arrays["action_mask"]).to(device)
        scores = in_parts(self.network, tokens, lambda at: self.network.scores(tokens[at], legal[at])[0])
        outputs = scores.float().cpu().numpy()
        logp = log_probabilities(outputs)
        picked = outputs.argmax(1) if greedy else choose(outputs, np.array([t.chance for t in turns]))
        return [
            Choice(int(a), float(row[a]), tuple(np.exp(row).round(6).tolist()))
            for a, row in zip(picked, logp, strict=True)
        ]
