"""Language models before training: where each lies, the tiny ones made on the spot, and how each role is asked."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from assembly.build import Build
from assembly.lm_sections import CausalLM
from envs.candidates import candidates
from policies.lm.featurize import PromptFeatures, PromptFeaturizer
from policies.lm.loading import TINY, model_directory
from policies.lm.prompt import RoleText, role_text
from runtime.errors import TeamError
from runtime.types import AgentId

MODELS = "models"
"""In the run directory: models made on the spot, and what warm starts left."""
WEIGHT = 60
"""How often role texts count beside what was seen, when a tokenizer learns what is frequent: all prompts have them."""


def prompted(build: Build) -> dict[str, CausalLM]:
    """The learning policies that are language models, by name."""
    return {n: p for n, p in build.learned.items() if isinstance(p, CausalLM)}


def located(build: Build) -> dict[str, Path]:
    """The directory of each policy's model, but for those that are made. Raises WeightsMissing."""
    return {n: model_directory(p.model, build.folder) for n, p in prompted(build).items() if p.model != TINY}


def prompts(build: Build, seen: Mapping[AgentId, Sequence[str]], directory: Path) -> dict[str, PromptFeaturizer]:
    """How each language model policy sees.

    Args:
        build: the experiment.
        seen: what each agent saw in random play: a tokenizer that is made here learns from it.
        directory: the run's.
    """
    places, texts = located(build), {n: _text(build, n) for n in prompted(build)}
    made: dict[str, PromptFeaturizer] = {}
    for name, policy in prompted(build).items():
        path = places.get(name) or _tiny(build, policy, texts, seen, directory)
        start = directory / MODELS / f"{name}-{_alike(policy)}.start.safetensors" if policy.warmup else None
        features = PromptFeatures(str(path), texts[name], policy.max_tokens, str(start.resolve()) if start else "")
        made[name] = PromptFeaturizer(features)
    return made


def _text(build: Build, policy: str) -> RoleText:
    """What the policy's role is told. Raises TeamError where its roles differ in it."""
    assert build.team is not None
    agents = [a for a in build.learners if build.policy_of[a] == policy]
    roles = [build.team.role(a) for a in agents]
    told = {r.name: role_text(build.team, r, candidates(build.team, r)) for r in roles}
    if len(set(told.values())) > 1:
        raise TeamError(
            f"policy {policy} decides for {', '.join(told)}, whose tools or briefs differ; give each a policy of its "
            "own (with lora, policies share one base all the same)"
        )
    return next(iter(told.values()))


def _tiny(
    build: Build,
    policy: CausalLM,
    texts: Mapping[str, RoleText],
    seen: Mapping[AgentId, Sequence[str]],
    directory: Path,
) -> Path:
    """A tiny model, made once for all policies that want one of this shape and with this warm start."""
    from policies.lm.tiny import TinyShape, make_tiny

    users = [n for n, p in prompted(build).items() if _alike(p) == _alike(policy)]
    target = (directory / MODELS / f"{TINY}-{_alike(policy)}").resolve()
    if not (target / "config.json").is_file():
        told = [t for n in users for t in (texts[n].system, *texts[n].calls)] * WEIGHT
        lines = [
            f"{line}\n"
            for agent in build.learners
            if build.policy_of[agent] in users
            for text in seen.get(agent, ())
            for line in text.split("\n")
        ]
        make_tiny(target, TinyShape(**policy.tiny.model_dump(), seed=build.experiment.seed), [*told, *lines])
    return target


def _alike(policy: CausalLM) -> str:
    """The same for policies that begin with the same made model: a hash of model, shape and warm start."""
    warmup = policy.warmup.model_dump_json() if policy.warmup else ""
    text = f"{policy.model} {policy.tiny.model_dump_json()} {warmup} {policy.lora} {policy.mode}"
    return sha256(text.encode()).hexdigest()[:8]
