"""What a language model policy is, as plain values that travel to every process as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from policies.lm.tree import Tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Lora:
    """Low-rank adapters (Hu et al. 2021) on a frozen base."""

    r: int
    alpha: int
    targets: tuple[str, ...]
    """Names of the linear layers that get one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LMSpec:
    """Everything that a policy's network is built from."""

    path: str
    """Directory of the model (transformers' format); what trains starts from it."""
    model: str = ""
    """What the experiment file calls it: how another machine finds it."""
    made: bool = False
    """The model was made for this run: nobody else has it, and a warm start trains all of it."""
    mode: Literal["choose", "generate"] = "choose"
    score: Literal["sum", "mean"] = "sum"
    """What a call's score is of its tokens' log-probabilities."""
    lora: Lora | None = None
    """None: all of the model trains."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of a frozen base. What trains is kept in float32."""
    head: Tokens
    """The prompt's tokens before what the agent has seen."""
    tail: Tokens
    """The prompt's tokens after it."""
    calls: tuple[Tokens, ...]
    """The candidates' tokens, in their order."""
    texts: tuple[str, ...] = ()
    """The candidates as JSON text, in their order."""
    arguments: str = "{}"
    """JSON: the schema of the arguments, of each tool that takes some."""
    longest: int = 64
    """Tokens of a call that is written, at most; one that is not complete by then is malformed."""
    room: int
    """Tokens of what the agent has seen, at most."""
    detached: bool = True
    """The critic's error does not reach the language model."""
    checkpointing: bool = False
    """Compute activations twice and keep few of them: less memory, a third more time."""
    chunk: int = 16_384
    """Tokens in one forward pass, at most; a larger batch goes through in parts, whose gradients add up."""
    kl: float = 0.0
    """Weight of the KL divergence from the frozen reference, per nat."""
    start: str = ""
    """File (safetensors) with what the trainable parameters start from; empty: fresh."""

    @property
    def outputs(self) -> int:
        """How many candidates there are."""
        return len(self.calls)

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def spec_from(fields: Mapping[str, Any]) -> LMSpec:
    """The spec that ``as_json`` gave, also after it went through JSON."""
    lora = fields["lora"]
    made: dict[str, Any] = {
        **fields,
        "lora": None if lora is None else Lora(r=lora["r"], alpha=lora["alpha"], targets=tuple(lora["targets"])),
        "head": tuple(fields["head"]),
        "tail": tuple(fields["tail"]),
        "calls": tuple(tuple(c) for c in fields["calls"]),
        "texts": tuple(fields["texts"]),
    }
    return LMSpec(**made)
