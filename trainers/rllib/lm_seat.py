"""What a language model policy needs to be built, in the learner, in samplers and where it is played."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from assembly.lm_sections import CausalLM
from policies.lm.featurize import TOKENS, PromptFeaturizer
from policies.lm.layout import PAD
from policies.lm.loading import TINY
from policies.lm.network import Network
from policies.lm.playing import network_of, policy_of
from policies.lm.spec import LMSpec, Lora
from policies.lm.writing import Writer
from policies.playing import Playable
from trainers.rllib.lm_module import CausalLMModule, WritingModule


@dataclass(frozen=True, slots=True)
class LMSeat:
    """A learning policy that is a language model."""

    spec: LMSpec
    featurize: PromptFeaturizer
    observations: gym.spaces.Dict
    actions: gym.Space[Any]

    def module(self) -> RLModuleSpec:
        """The policy as RLlib builds it."""
        return RLModuleSpec(
            module_class=WritingModule if self.spec.mode == "generate" else CausalLMModule,
            observation_space=self.observations,
            action_space=self.actions,
            model_config={"spec": self.spec.as_json()},
        )

    def actor(self, weights: Mapping[str, Any] | None = None) -> Network | Writer:
        """The network that decides, with these weights of its module, or as it is before training."""
        import torch

        made = network_of(self.spec)
        if weights is not None:
            own = {k.removeprefix("pi."): torch.as_tensor(v) for k, v in weights.items() if k.startswith("pi.")}
            made.load_state_dict(own)
        return made

    def policy(self, actor: Any) -> Playable:
        """The network at play."""
        return policy_of(actor, self.featurize)


def lm_seat(settings: CausalLM, featurize: PromptFeaturizer, actions: gym.Space[Any], device: str) -> LMSeat:
    """The seat of a policy. ``device``: where it learns, ``cpu`` or ``cuda``."""
    features, prompter = featurize.features, featurize.features.prompter
    dtype = settings.dtype
    if dtype == "auto":
        dtype = "bfloat16" if device == "cuda" and settings.lora else "float32"
    lora = settings.lora
    spec = LMSpec(
        path=features.path,
        model=settings.model,
        made=settings.model == TINY,
        mode=settings.mode,
        score=settings.score,
        lora=None if lora is None else Lora(r=lora.r, alpha=lora.alpha, targets=lora.targets),
        dtype=dtype,
        head=prompter.head,
        tail=prompter.tail,
        calls=prompter.calls,
        texts=features.text.calls,
        arguments=features.text.arguments,
        longest=settings.call_tokens,
        room=prompter.room,
        detached=settings.critic == "detached",
        checkpointing=settings.checkpointing,
        chunk=settings.chunk,
        kl=settings.kl,
        start=features.start,
    )
    kind: Any = np.bool_  # gymnasium takes it, and does not say so
    tokens = gym.spaces.Box(PAD, np.iinfo(np.int32).max, (spec.room,), np.int32)
    seen = gym.spaces.Dict({TOKENS: tokens, "action_mask": gym.spaces.Box(0, 1, (spec.outputs,), kind)})
    return LMSeat(spec, featurize, seen, actions)
