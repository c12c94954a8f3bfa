"""The encoder policy as an RLlib module."""

from typing import Any

from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule

from policies.encoder import Actor, Critic, EncoderSpec


class EncoderModule(TorchRLModule, ValueFunctionAPI, InferenceOnlyAPI):
    """Actor and critic side by side; observations are ``{"features", "action_mask"?, "state"?}``.

    ``model_config["spec"]`` holds the fields of EncoderSpec.
    """

    def setup(self) -> None:
        spec = EncoderSpec(**self.model_config["spec"])
        self.pi = Actor(spec)
        self.vf = Critic(spec)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        seen = batch[Columns.OBS]
        return {Columns.ACTION_DIST_INPUTS: self.pi(seen["features"], seen.get("action_mask"))}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        seen = batch[Columns.OBS]
        return self.vf(seen["state"] if "state" in seen else seen["features"])

    def get_non_inference_attributes(self) -> list[str]:
        return ["vf"]
