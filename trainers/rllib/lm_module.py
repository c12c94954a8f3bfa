"""A language model policy as an RLlib module."""

from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule

from policies.lm.batches import in_parts
from policies.lm.featurize import TOKENS
from policies.lm.layout import PAD
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
        self.pi: Any = network_of(self.spec)
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


class WritingModule(CausalLMModule):
    """A model that writes its calls; actions are their tokens, ``(B, T)``, padded with PAD."""

    def generate(self, batch: dict[str, Any], keys: Any) -> dict[str, Any]:
        """Calls for a batch, and each token's log-probability; without keys the likeliest tokens."""
        seen = batch[Columns.OBS]
        said = self.pi.write(seen[TOKENS], seen[MASK], keys)
        return {Columns.ACTIONS: torch.from_numpy(said.tokens), Columns.ACTION_LOGP: torch.from_numpy(said.logp)}

    def spoken(self, actions: Any) -> list[str]:
        """Actions as the environment takes them: calls as text."""
        return self.pi.spoken(actions)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return self.generate(batch, None)

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Along the calls that were written: (B, T, 2) of log-probability and entropy, and each token's state."""
        seen = batch[Columns.OBS]
        found = self.pi.follow(seen[TOKENS], seen[MASK], batch[Columns.ACTIONS])
        return {
            Columns.ACTION_DIST_INPUTS: torch.stack([found.logp, found.entropy], -1),
            Columns.EMBEDDINGS: found.hidden,
        }

    def token_values(self, batch: dict[str, Any]) -> Any:
        """(B, T) what the critic says before each token."""
        seen, calls = batch[Columns.OBS], batch[Columns.ACTIONS]
        width = max(1, int((calls != PAD).sum(1).max()))

        def ask(at: Any) -> Any:
            values = self.vf(self.pi.follow(seen[TOKENS][at], seen[MASK][at], calls[at]).hidden)
            return torch.nn.functional.pad(values, (0, width - values.shape[1]))

        with torch.no_grad():
            return in_parts(self.pi, seen[TOKENS], ask)
