"""A small trained-looking policy, and turns for it."""

import numpy as np
import torch

from policies.encoder import Actor, EncoderSpec
from policies.features import HashingFeatures
from policies.featurize import TextFeaturizer
from policies.playing import EncoderPolicy, Turn

CANDIDATES = 4
SPEC = EncoderSpec(features=32, state=32, outputs=CANDIDATES, hidden=(16,))


def actor(seed: int = 0, spec: EncoderSpec = SPEC) -> Actor:
    """A network that has made up its mind, unlike a fresh one."""
    torch.manual_seed(seed)
    made = Actor(spec)
    with torch.no_grad():
        for p in made.parameters():
            p.copy_(torch.randn_like(p))
    return made


def policy(seed: int = 0) -> EncoderPolicy:
    return EncoderPolicy(actor(seed), TextFeaturizer(HashingFeatures(SPEC.features)))


def turns(count: int = 64) -> list[Turn]:
    """Turns of different cases, with different masks: one candidate in four is illegal."""
    return [
        Turn(
            agent="triage",
            seen={
                "text": f'case {{"status": "{"abcdefg"[i % 7]}"}}\nstock {{"count": {i * i}}}',
                "action_mask": np.array([k != i % CANDIDATES for k in range(CANDIDATES)], np.int8),
            },
            key=(3, f"case {i}"),
            turn=i % 3,
        )
        for i in range(count)
    ]
