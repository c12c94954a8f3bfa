"""A trained language model as files: what plain transformers and peft open, and how it is used."""

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save_file

from policies.export import BadExport, as_json
from policies.lm.adapters import Adapted
from policies.lm.featurize import PromptFeaturizer, prompts_from_state
from policies.lm.loading import load_tokenizer, model_directory
from policies.lm.playing import LMPolicy, WritingPolicy, network_of, policy_of
from policies.lm.reading import Reader
from policies.lm.spec import spec_from

KIND = "causal_lm"
MODELS = "models"
"""In an export: bases that were made for the run."""
ADAPTER = "adapter_model.safetensors"


def lm_files(name: str, network: Reader, features: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of one policy: its peft adapter, or its model with tokenizer, and how it is asked.

    A base that was made for the run comes along; any other is named, with the hash of its weights.
    """
    spec, base = network.spec, Path(network.spec.path)
    with TemporaryDirectory() as scratch:
        place = Path(scratch)
        if isinstance(network.weights, Adapted):
            save_adapter(network.weights, place)
        else:
            save_model(network, place)
        files = {f"policies/{name}/{k}": v for k, v in _read(place).items()}
    about: dict[str, Any] = {
        "kind": KIND,
        "spec": replace(spec, path="", start="").as_json(),
        "features": {**features, "path": "", "start": ""},
        "base": None,
    }
    if spec.lora is not None:
        weights = weights_hash(base)
        about["base"] = {"model": spec.model, "weights": weights, "place": f"{MODELS}/{weights}" if spec.made else None}
        if spec.made:
            files |= {f"{MODELS}/{weights}/{k}": v for k, v in _read(base).items()}
    return {**files, f"policies/{name}.json": as_json(about)}


def _read(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


def save_adapter(weights: Adapted, directory: Path) -> None:
    """Write the adapters as peft does: ``PeftModel.from_pretrained(base, directory)`` opens it."""
    config, state = weights.peft_state()
    directory.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(directory)
    save_file({k: v.detach().cpu().contiguous() for k, v in state.items()}, directory / ADAPTER, {"format": "pt"})


def save_model(network: Reader, directory: Path) -> None:
    """Write the model and its tokenizer: ``AutoModelForCausalLM.from_pretrained(directory)`` opens it."""
    with network.weights.used() as model:
        model.save_pretrained(directory)
    load_tokenizer(network.spec.path).save_pretrained(directory)


def weights_hash(directory: Path) -> str:
    """SHA-256 over a model's weight files."""
    told = sha256()
    for file in sorted(directory.glob("*.safetensors")):
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                told.update(block)
    return told.hexdigest()[:32]


def lm_policy(name: str, files: Mapping[str, bytes], directory: Path) -> LMPolicy | WritingPolicy:
    """The language model policy of that name, ready to play a team.

    Args:
        name: the policy's.
        files: the export's, as ``policies.export.read`` checked them.
        directory: where they lie.

    Raises:
        BadExport: it is missing, damaged, or its base is another one here.
        WeightsMissing: its base is not on this machine.
    """
    try:
        about = json.loads(files[f"policies/{name}.json"])
        base = about["base"]
        path = directory / "policies" / name if base is None else _base(base, directory)
        features = prompts_from_state({**about["features"], "path": str(path)})
        network = network_of(replace(spec_from(about["spec"]), path=str(path)))
        if base is not None:
            _load_adapter(network, read_tensors(files[f"policies/{name}/{ADAPTER}"]))
    except (KeyError, ValueError, TypeError, SafetensorError) as error:
        raise BadExport(f"policy {name}: {error!r}") from None
    return policy_of(network, PromptFeaturizer(features))


def _base(about: Mapping[str, Any], directory: Path) -> Path:
    if about["place"] is not None:
        return directory / about["place"]
    path = model_directory(about["model"])
    if weights_hash(path) != about["weights"]:
        raise BadExport(f"model {about['model']} at {path} has other weights than the policy was trained on")
    return path


def _load_adapter(network: Reader, state: Mapping[str, torch.Tensor]) -> None:
    """Put a saved adapter's tensors into this network's own."""
    assert isinstance(network.weights, Adapted)
    mine = {k.replace("|", "."): v for k, v in network.weights.lora.items()}
    if mine.keys() != state.keys():
        raise ValueError(f"the adapter has other layers: {sorted(mine.keys() ^ state.keys())[:3]}")
    with torch.no_grad():
        for key, value in state.items():
            mine[key].copy_(value)
