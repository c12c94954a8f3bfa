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
from policies.lm.writing import Writer
from policies.playing import Choice, Turn


def weights_of(spec: LMSpec) -> Weights:
    """The model of a spec, or fresh adapters on it."""
    made = Owned(spec.path, spec.dtype) if spec.lora is None else Adapted(spec.path, spec.lora, spec.dtype)
    if spec.checkpointing:
        with made.used() as model:
            model.activation_checkpointing_enable({"use_reentrant": False})
    return made


def network_of(spec: LMSpec) -> Network | Writer:
    """The network of a spec, with the model's weights and fresh adapters if it has any."""
    return (Writer if spec.mode == "generate" else Network)(spec, weights_of(spec))


def policy_of(network: Network | Writer, featurize: PromptFeaturizer) -> "LMPolicy | WritingPolicy":
    """The network at play."""
    return WritingPolicy(network, featurize) if isinstance(network, Writer) else LMPolicy(network, featurize)


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


class WritingPolicy:
    """A language model with frozen weights that writes its calls token by token."""

    def __init__(self, network: Writer, featurize: PromptFeaturizer) -> None:
        self.network, self.featurize = network.eval(), featurize

    def decide(self, turns: Sequence[Turn], greedy: bool) -> Sequence[Choice]:
        """A call a turn, as JSON text; ``logp`` is the sum over its tokens."""
        arrays = self.featurize([t.seen for t in turns])
        device = next(self.network.parameters()).device
        tokens = torch.from_numpy(arrays[TOKENS]).to(device)
        keys = None if greedy else [(*t.key, t.agent, t.turn) for t in turns]
        said = self.network.write(tokens, torch.from_numpy(arrays["action_mask"]), keys)
        texts = self.network.spoken(said.tokens)
        return [Choice(text, float(logp.sum())) for text, logp in zip(texts, said.logp, strict=True)]
