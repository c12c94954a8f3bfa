"""A language model policy as an RLlib module."""

from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule

from policies.lm.batches import in_parts
from policies.lm.featurize import TOKENS
from policies.lm.network import ValueHead
from policies.lm.playing import network_of
from policies.lm.spec import spec_from
from trainers.rllib.slots import MASK


class CausalLMModule(TorchRLModule, ValueFunctionAPI, InferenceOnlyAPI):
    """A model that scores the calls, and a critic on its last hidden state; observations are ``{tokens, action_mask}``.

    ``model_config["spec"]`` holds the fields of LMSpec. State is what trains: adapters and critic, or model and critic.
    """

    def setup(self) -> None:
        self.spec = spec_from(self.model_config["spec"])
        self.pi = network_of(self.spec)
        self.vf = ValueHead(self.pi.weights.hidden_size)
        if self.spec.start:
            from safetensors.torch import load_file

            self.begin_with(load_file(self.spec.start))

    def begin_with(self, state: dict[str, torch.Tensor]) -> None:
        """Take over what a warm start left. Raises ValueError where it is of another network."""
        strange = self.load_state_dict(state, strict=False).unexpected_keys
        if strange:
            raise ValueError(f"the warm start is of another network: it has {strange[0]}, which this one lacks")

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """For deciding: the whole batch, in parts, without gradients."""
        seen = batch[Columns.OBS]
        tokens, legal = seen[TOKENS], seen[MASK]
        with torch.no_grad():
            return {
                Columns.ACTION_DIST_INPUTS: in_parts(
                    self.pi, tokens, lambda at: self.pi.scores(tokens[at], legal[at])[0]
                )
            }

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """For learning: as many rows as fit into one pass, with the last hidden states for the critic."""
        seen = batch[Columns.OBS]
        scores, hidden = self.pi.scores(seen[TOKENS], seen[MASK])
        return {Columns.ACTION_DIST_INPUTS: scores, Columns.EMBEDDINGS: hidden}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        if embeddings is not None:
            return self.vf(embeddings.detach() if self.spec.detached else embeddings)
        tokens = batch[Columns.OBS][TOKENS]
        with torch.no_grad():
            return in_parts(self.pi, tokens, lambda at: self.vf(self.pi.prompt_states(tokens[at])))

    def reference_scores(self, batch: dict[str, Any]) -> Any:
        """(B, K) what the frozen reference says of a batch."""
        with self.pi.as_reference():
            return self._forward(batch)[Columns.ACTION_DIST_INPUTS]

    def get_non_inference_attributes(self) -> list[str]:
        return ["vf"]
