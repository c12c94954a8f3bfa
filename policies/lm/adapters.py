"""What trains of a model: all of it, or adapters of one's own on a base that all policies of a process share."""

import threading
import warnings
import weakref
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from policies.lm.loading import load_model
from policies.lm.spec import Lora


class Weights(nn.Module):
    """A causal language model; its parameters as a module are those that train."""

    hidden_size: int

    @contextmanager
    def used(self) -> Generator[Any]:
        """The transformers model, ready to be called with these weights."""
        raise NotImplementedError
        yield

    @contextmanager
    def reference(self) -> Generator[None]:
        """In here, ``used`` gives the frozen model that training began with."""
        raise NotImplementedError
        yield

    def mark(self) -> Any:
        """Equal as long as no weight has changed."""
        raise NotImplementedError


class Base:
    """A frozen model, and the adapters on it."""

    def __init__(self, path: str, dtype: str) -> None:
        self.model: Any = load_model(path, dtype).eval().requires_grad_(False)
        self.path = path
        self.peft: Any = None
        self._names = (f"adapter_{i}" for i in count())

    def add(self, lora: Lora) -> str:
        """Put fresh adapters on it; returns their name."""
        from peft import LoraConfig, get_peft_model

        name = next(self._names)
        config = LoraConfig(
            task_type="CAUSAL_LM", r=lora.r, lora_alpha=lora.alpha, target_modules=list(lora.targets), lora_dropout=0.0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by a name that is going away
            if self.peft is None:
                self.peft = get_peft_model(self.model, config, adapter_name=name)
            else:
                self.peft.add_adapter(name, config)
        self.all_train()
        return name

    def drop(self, name: str) -> None:
        """Take adapters off that nobody uses any more; the last ones stay, since peft wants some."""
        if len(self.peft.peft_config) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that another one becomes active, which is as good
                self.peft.delete_adapter(name)
            self.all_train()

    def switch(self, name: str) -> None:
        """Let these adapters be the ones that work."""
        if self.peft.active_adapter != name:
            self.peft.set_adapter(name)
            self.all_train()

    @contextmanager
    def bare(self) -> Generator[Any]:
        """The model with no adapters at work, whoever has some on it."""
        if self.peft is None:
            yield self.model
            return
        with self.peft.disable_adapter():
            yield self.model
        self.all_train()

    def all_train(self) -> None:
        """Peft freezes all adapters but the active ones: other policies would silently get no gradients."""
        for _, p in self.adapters():
            p.requires_grad_(True)

    def adapters(self) -> Iterable[tuple[str, nn.Parameter]]:
        """The parameters of all adapters."""
        return ((n, p) for n, p in self.peft.named_parameters() if "lora_" in n)


_AT_WORK = threading.RLock()
"""Held while adapters work: switching them is for the whole base, and several threads may decide at once."""
_BASES: dict[tuple[str, str, str], Base] = {}
"""The bases of this process, by path, type and device."""


def shared_base(path: str, dtype: str, device: str = "cpu") -> Base:
    """The one copy of a frozen model in this process."""
    key = (path, dtype, device)
    if key not in _BASES:
        made = Base(path, dtype)
        made.model.to(device)
        _BASES[key] = made
    return _BASES[key]


def forget_base(path: str) -> None:
    """Let go of a frozen model, whose directory holds another one now."""
    for key in [k for k in _BASES if k[0] == path]:
        del _BASES[key]


class Owned(Weights):
    """A model of one's own, all of which trains."""

    def __init__(self, path: str, dtype: str = "float32", *, model: Any = None) -> None:
        super().__init__()
        self._path, self._dtype = path, dtype
        self.lm: Any = model if model is not None else load_model(path, "float32")
        self.hidden_size = int(self.lm.config.hidden_size)
        self._frozen: Base | None = None

    @contextmanager
    def used(self) -> Generator[Any]:
        """The model itself; inside ``reference``, the shared frozen one."""
        if self._frozen is None:
            yield self.lm
            return
        with self._frozen.bare() as model:
            yield model

    @contextmanager
    def reference(self) -> Generator[None]:
        """A second copy of the model: one that trains as a whole cannot be its own reference."""
        self._frozen = shared_base(self._path, self._dtype, str(next(self.lm.parameters()).device))
        try:
            yield
        finally:
            self._frozen = None

    def mark(self) -> Any:
        """A checksum of all weights. Torch's own counts of changes miss what fused optimizers do."""
        return (self._frozen is None, checksum(self.lm.parameters()))


class Adapted(Weights):
    """Adapters of one's own on the shared base: only they are parameters, state and optimizer of this module."""

    def __init__(self, path: str, lora: Lora, dtype: str = "float32") -> None:
        super().__init__()
        self._path, self._lora, self._dtype = path, lora, dtype
        self._off = False
        self._seat(shared_base(path, dtype))
        self.hidden_size = int(self._base[0].model.config.hidden_size)

    def _seat(self, base: Base) -> None:
        """Take a place on a base."""
        self._base = (base,)  # in a tuple, so that torch does not take the base for a part of this module
        self.name = base.add(self._lora)
        mine = {n: p for n, p in base.adapters() if f".{self.name}." in n}
        self.lora = nn.ParameterDict({_key(n, self.name): p for n, p in mine.items()})
        weakref.finalize(self, base.drop, self.name)

    def _apply(self, fn: Any, recurse: bool = True) -> "Adapted":
        """Moved to another device, it takes a place on the base there."""
        where = fn(torch.zeros(0)).device
        if where.type != next(iter(self.lora.values())).device.type:
            values = {k: v.detach() for k, v in self.lora.items()}
            self._seat(shared_base(self._path, self._dtype, str(where)))
            with torch.no_grad():
                for k, v in self.lora.items():
                    v.copy_(values[k])
        super()._apply(fn, recurse)
        return self

    @contextmanager
    def used(self) -> Generator[Any]:
        """The base with these adapters at work; inside ``reference``, with none."""
        base = self._base[0]
        with _AT_WORK:
            if self._off:
                with base.bare() as model:
                    yield model
                return
            base.switch(self.name)
            yield base.model

    @contextmanager
    def reference(self) -> Generator[None]:
        """The base alone: no second copy."""
        self._off = True
        try:
            yield
        finally:
            self._off = False

    def mark(self) -> Any:
        """A hash of the adapters' content: a reload under the same name is not mistaken for what was there before."""
        return (self._off, content_hash(self.lora.items()))

    def peft_state(self) -> tuple[Any, dict[str, Tensor]]:
        """Configuration and tensors as peft saves them."""
        from peft import get_peft_model_state_dict

        peft = self._base[0].peft
        return peft.peft_config[self.name], get_peft_model_state_dict(peft, adapter_name=self.name)


def _key(name: str, adapter: str) -> str:
    """A parameter's name without its adapter's, and without dots, which a ParameterDict does not take."""
    return name.replace(f".{adapter}.", ".").replace(".", "|")


def checksum(tensors: Iterable[Tensor]) -> tuple[int, ...]:
    """The sum of each tensor's bits, read as whole numbers: fast, and equal by chance once in 2³² changes."""
    sums = [t.detach().view(torch.int32 if t.element_size() == 4 else torch.int16).sum() for t in tensors]
    return tuple(torch.stack(sums).tolist())


def content_hash(named: Iterable[tuple[str, Tensor]]) -> str:
    """SHA-256 over names and bytes."""
    told = sha256()
    for name, value in sorted(named):
        told.update(name.encode())
        told.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return told.hexdigest()
