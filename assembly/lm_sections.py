"""Sections of the experiment file for policies that are language models."""

from typing import Annotated, Literal

from pydantic import Field, Strict

from assembly.fields import Count, Positive, Rate, Section, Share, Text


class TinyModel(Section):
    """The shape of a model that is made on the spot, `model: tiny`; its tokenizer is learned from the team's texts."""

    hidden: Count = 128
    """Width of the hidden states; a multiple of twice `heads`."""
    layers: Count = 3
    """Transformer layers."""
    heads: Count = 4
    """Attention heads."""
    vocabulary: Annotated[int, Field(ge=300)] = 1024
    """Tokens at most: 256 bytes, five marks, and what is frequent in the team's texts."""


class LoraSettings(Section):
    """Low-rank adapters (Hu et al. 2021): only they train, and the base stays as it is."""

    r: Count = 8
    """Rank."""
    alpha: Count = 16
    """Scale: what the adapters say is multiplied with `alpha / r`."""
    targets: Annotated[tuple[Text, ...], Strict(False)] = ("q_proj", "k_proj", "v_proj", "o_proj")
    """The layers that get adapters, by the end of their names."""


class Warmup(Section, serialize_by_alias=True):
    """A warm start before PPO: the policy learns to call what somebody else called (behaviour cloning)."""

    source: Text = Field(default="expert", alias="from")
    """Who is imitated: one of the team's playable baselines, or records: a store's URL, a Parquet or a JSONL file."""
    episodes: Count = 1000
    """Episodes that the baseline plays, or that are read from the file at most."""
    epochs: Count = 2
    """How often each decision is gone through."""
    lr: Positive = 1e-3
    """Adam's step size at its highest: it rises over the first tenth and falls to 0."""
    minibatch: Count = 64
    """Decisions in a gradient step."""
    smoothing: Share = 0.1
    """Share of the aim that is spread over all legal calls, so that the policy goes on trying others."""

    @property
    def recorded(self) -> bool:
        """Whether recorded decisions are imitated, and not a baseline that plays."""
        return "://" in self.source or self.source.endswith((".jsonl", ".parquet"))


class _Seated(Section):
    roles: Annotated[tuple[Text, ...], Strict(False)] | None = None
    """Roles (or patterns such as `player_*`) that it decides for; null: those whose policy has its name."""


class CausalLM(_Seated):
    """Learns: a causal language model reads the role's brief, tools and what it has seen, and makes the call."""

    kind: Literal["causal_lm"] = "causal_lm"
    """Kind of policy: a language model, which learns."""
    model: Text = "tiny"
    """`tiny`, `smollm2` (an installed package), a directory or GGUF file, or a hub name that is on this machine."""
    tiny: TinyModel = Field(default_factory=TinyModel)
    mode: Literal["choose", "generate"] = "choose"
    """`choose`: every legal call is scored, one is drawn by exp(score); `generate`: it is written token by token."""
    score: Literal["sum", "mean"] = "sum"
    """A call's score: the sum or the mean of its tokens' log-probabilities."""
    lora: LoraSettings | None = None
    """Adapters on a base that the policies of a process share; null: all of the model trains."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of a frozen base; `auto`: bfloat16 on a GPU, float32 elsewhere."""
    max_tokens: Count = 1024
    """Tokens of prompt and call together; what was seen is cut to fit, the oldest results first."""
    call_tokens: Annotated[int, Field(ge=4)] = 64
    """Tokens of a call that `generate` writes, at most; one that is not complete by then is malformed."""
    critic: Literal["detached", "attached"] = "detached"
    """Whether the value head's error also trains the language model."""
    kl: Rate = 0.0
    """Weight of the KL divergence from the model that PPO started from (with `lora`: from the base), per nat."""
    chunk: Annotated[int, Field(ge=256)] = 16_384
    """Tokens in one forward pass, at most: gradients of a minibatch add up over as many passes as it takes."""
    checkpointing: bool = False
    """Compute activations twice, and keep few of them: less memory for a third more time."""
    warmup: Warmup | None = None
    """A warm start; null: none."""


class Prompted(_Seated):
    """A frozen language model that is asked for each call, and never learns: a teammate."""

    kind: Literal["prompted"] = "prompted"
    """Kind of policy: a model that is asked."""
    model: Text
    """With `base_url` the model's name there; else a model of this machine, named as for `causal_lm`."""
    base_url: Text | None = None
    """Address of an OpenAI-compatible endpoint; null: the model is of this machine."""
    key_variable: Text = "OPENAI_API_KEY"
    """The environment variable that holds the endpoint's key."""
    usd_per_million_in: Rate = 0.0
    """Price of a million tokens that the model reads, US dollars; counted against `limits.usd`."""
    usd_per_million_out: Rate = 0.0
    """Price of a million tokens that it writes, US dollars."""
    temperature: Rate = 0.0
    """How much chance there is in an answer; 0: the likeliest token each time."""
    answer_tokens: Count = 128
    """Tokens of an answer, at most."""
    timeout_s: Positive = 60.0
    """How long an answer may take, retries included, s. Where none comes the run stops."""
