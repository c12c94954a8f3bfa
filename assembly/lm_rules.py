"""Rules between keys of policies that are language models."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assembly.lm_sections import CausalLM, Prompted, TinyModel
from assembly.rules import Broken

if TYPE_CHECKING:
    from assembly.experiment import Experiment

TINY = "tiny"


def broken_lm_rules(x: "Experiment") -> list[Broken]:
    """Every rule that does not hold."""
    models = [(n, p) for n, p in x.policies.items() if isinstance(p, CausalLM)]
    asked = [(n, p) for n, p in x.policies.items() if isinstance(p, Prompted)]
    own = [b for name, policy in models for rule in RULES for b in rule(f"policies.{name}", policy)]
    teams = (b for name, _ in models for b in _in_its_team(x, f"policies.{name}"))
    return [*own, *teams, *(b for name, policy in asked for b in _asked(x, f"policies.{name}", policy))]


def _asked(x: "Experiment", key: str, policy: Prompted) -> Iterator[Broken]:
    """A prompted model reads text, and only an endpoint has a key."""
    if x.team.pettingzoo and not x.team.use:
        yield Broken(f"{key}.kind", "prompted reads text, and this environment shows arrays; use scripted", ("team",))
    for name in ("key_variable", "usd_per_million_in", "usd_per_million_out"):
        if policy.base_url is None and getattr(policy, name) != Prompted.model_fields[name].default:
            yield Broken(f"{key}.{name}", "has no effect without base_url; drop it", (f"{key}.base_url",))
    if policy.base_url is None and policy.model == TINY:
        yield Broken(f"{key}.model", "tiny is made to be trained, and would only answer noise; name another")


def _in_its_team(x: "Experiment", key: str) -> Iterator[Broken]:
    """A language model reads text, and has no features for somebody else's critic."""
    if x.team.pettingzoo and not x.team.use:
        yield Broken(f"{key}.kind", "causal_lm reads text, and this environment shows arrays; use encoder", ("team",))
    for name, other in x.policies.items():
        if other.kind == "encoder" and other.critic == "central":
            reason = "central sees the features of the whole team, and a language model has none; use own"
            yield Broken(f"policies.{name}.critic", reason, (f"{key}.kind",))


def tiny_shape(key: str, policy: CausalLM) -> Iterator[Broken]:
    """A shape for a model that is made, and only for one."""
    if policy.model != TINY and policy.tiny != TinyModel():
        yield Broken(f"{key}.tiny", f"has no effect with model: {policy.model}; drop one", (f"{key}.model",))
    if policy.tiny.hidden % (2 * policy.tiny.heads):
        message = f"{policy.tiny.hidden} is no multiple of twice the {policy.tiny.heads} heads"
        yield Broken(f"{key}.tiny.hidden", message, (f"{key}.tiny.heads",))


def a_base_that_knows(key: str, policy: CausalLM) -> Iterator[Broken]:
    """Adapters want something to adapt."""
    if policy.model == TINY and policy.lora is not None and policy.warmup is None:
        message = "would train adapters on a model that knows nothing and stays so; add warmup, or drop lora"
        yield Broken(f"{key}.lora", message, (f"{key}.model", f"{key}.warmup"))


def idle_type(key: str, policy: CausalLM) -> Iterator[Broken]:
    """What trains is float32."""
    if policy.lora is None and policy.dtype == "bfloat16":
        message = "bfloat16 is the type of a frozen base; without lora all of the model trains, in float32: drop it"
        yield Broken(f"{key}.dtype", message, (f"{key}.lora",))


def of_a_mode(key: str, policy: CausalLM) -> Iterator[Broken]:
    """Settings that only one mode reads."""
    mode = (f"{key}.mode",)
    if policy.mode == "generate" and policy.score != "sum":
        yield Broken(f"{key}.score", "has no effect with mode: generate, which scores no calls; drop it", mode)
    if policy.mode == "generate" and policy.kl > 0:
        yield Broken(f"{key}.kl", "has no effect with mode: generate in this version; drop it", mode)
    if policy.mode == "choose" and policy.call_tokens != CausalLM.model_fields["call_tokens"].default:
        yield Broken(f"{key}.call_tokens", "has no effect with mode: choose, which writes no calls; drop it", mode)


RULES = (tiny_shape, a_base_that_knows, idle_type, of_a_mode)
