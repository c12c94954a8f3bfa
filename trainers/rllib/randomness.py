"""All chance that a training process draws from, as one state that can be saved and taken up again."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def randomness() -> dict[str, Any]:
    """Where Python's, numpy's and torch's generators stand, on every device."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # third parties draw from it
        "torch": torch.get_rng_state().numpy().copy(),
        "cuda": [state.numpy().copy() for state in cuda],
    }


def load_randomness(state: Mapping[str, Any]) -> None:
    """Draw on from there. States of devices that this machine lacks are left out."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    np.random.set_state(state["numpy"])
    torch.set_rng_state(torch.from_numpy(np.array(state["torch"], np.uint8)))
    for device, saved in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(torch.from_numpy(np.array(saved, np.uint8)), device)
