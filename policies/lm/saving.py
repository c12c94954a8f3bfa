"""A trained language model as files: what plain transformers and peft open, and how it is used."""

from pathlib import Path
from tempfile import TemporaryDirectory

from policies.lm.adapters import Adapted
from policies.lm.loading import load_tokenizer
from policies.lm.network import Network

ADAPTER = "adapter_model.safetensors"
WEIGHTS = "model.safetensors"


def model_files(network: Network) -> dict[str, bytes]:
    """The trained part as a directory's files: a peft adapter, or a model with its tokenizer."""
    with TemporaryDirectory() as scratch:
        place = Path(scratch)
        if isinstance(network.weights, Adapted):
            save_adapter(network.weights, place)
        else:
            save_model(network, place)
        return {str(p.relative_to(place)): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file()}


def save_adapter(weights: Adapted, directory: Path) -> None:
    """Write the adapters as peft does: ``PeftModel.from_pretrained(base, directory)`` opens it."""
    from safetensors.torch import save_file

    config, state = weights.peft_state()
    directory.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(directory)
    save_file({k: v.detach().cpu().contiguous() for k, v in state.items()}, directory / ADAPTER, {"format": "pt"})


def save_model(network: Network, directory: Path) -> None:
    """Write the model and its tokenizer: ``AutoModelForCausalLM.from_pretrained(directory)`` opens it."""
    with network.weights.used() as model:
        model.save_pretrained(directory)
    load_tokenizer(network.spec.path).save_pretrained(directory)
