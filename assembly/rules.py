"""Rules between keys of an experiment: each names the key to change, the reason, and every key it looked at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.moments import unix_time

if TYPE_CHECKING:
    from pydantic import BaseModel

    from assembly.experiment import Experiment

RUNNER_BYTES = 200_000_000
"""What a process that plays takes at least: Python, NumPy and Ray."""
EPISODE_BYTES = 10_000
"""What an open episode takes at least: a session, its records and its environment."""
DECISION_BYTES = 1_000
"""What a decision of a batch takes at least: its observation's text and what was computed from it."""
WEIGHT_BYTES = 16
"""What a weight takes: itself, its gradient and Adam's two moments, 4 bytes each."""
PATTERN = frozenset("*?[")
"""What makes a role's name a pattern."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that does not hold."""

    key: str
    message: str
    involves: tuple[str, ...] = ()
    """The other keys that the rule looked at: while one of them is wrong itself, the rule is silent."""


Rule = Callable[["Experiment"], Iterator[Broken]]


def broken_rules(experiment: Experiment) -> list[Broken]:
    """Every rule that does not hold."""
    return [broken for rule in RULES for broken in rule(experiment)]


def one_team(x: Experiment) -> Iterator[Broken]:
    """A team has one origin."""
    both = ("team.use", "team.pettingzoo")
    if x.team.use and x.team.pettingzoo:
        yield Broken("team", "has both use and pettingzoo; keep one", both)
    elif not (x.team.use or x.team.pettingzoo):
        yield Broken("team", "names no team; give use: package.module:attribute, or pettingzoo: a.dotted.name", both)


def held_out(x: Experiment) -> Iterator[Broken]:
    """What is evaluated is not what was trained on."""
    train, test = x.scenarios.train, x.scenarios.eval
    looked = ("scenarios.train", "scenarios.eval", "scenarios.file")
    if x.scenarios.file or x.scenarios.source:
        return
    if train.file and test.file and Path(train.file).resolve() == Path(test.file).resolve():
        reason = f"is the file that training reads too ({Path(train.file).name}); held out is held out"
        yield Broken(
            "scenarios.eval.file", f"{reason}: give another, or write scenarios: {{file: …}} to split it", looked
        )
    if not train.file and not test.file and train.seed == test.seed:
        reason = f"{test.seed} is the training seed too, so evaluation would play what was learnt; held out is held out"
        yield Broken("scenarios.eval.seed", f"{reason}: give another seed", looked)


def scenario_keys(x: Experiment) -> Iterator[Broken]:
    """No scenario key without effect."""
    part = x.scenarios
    for name, cases in (("train", part.train), ("eval", part.eval)):
        if part.file and cases != type(cases)():
            yield Broken(f"scenarios.{name}", "has no effect beside scenarios.file; drop one", ("scenarios.file",))
        elif cases.file:
            for key in sorted(_changed(cases) - {"file"}):
                message = "has no effect beside file, which is used whole; drop one"
                yield Broken(f"scenarios.{name}.{key}", message, (f"scenarios.{name}.file",))
    if x.team.pettingzoo and not x.team.use and x.evaluation.regressions:
        message = "has no effect: a PettingZoo environment has no recorded sessions; drop it"
        yield Broken("evaluation.regressions", message, ("team",))
    if part.eval_fraction is not None and not part.file:
        message = "has no effect without scenarios.file, the file to split"
        yield Broken("scenarios.eval_fraction", message, ("scenarios.file",))
    if x.team.pettingzoo and not x.team.use and (part.file or part.train.file or part.eval.file):
        message = "has a file, but a PettingZoo environment makes its own episodes from seeds"
        yield Broken("scenarios", message, ("scenarios", "team"))


def live_scenarios(x: Experiment) -> Iterator[Broken]:
    """What was asked live is read from somewhere, and in place of everything else."""
    part, asked = x.scenarios, ("scenarios.from",)
    if part.source is None:
        for key in ("store", "team", "since", "until"):
            if getattr(part, key) is not None:
                yield Broken(f"scenarios.{key}", "has no effect without from: live; add that, or drop it", asked)
        return
    if part.store is None:
        yield Broken("scenarios.store", "is missing: from: live reads recorded sessions; say where they are", asked)
    if part.file:
        yield Broken("scenarios.file", "has no effect beside from: live; drop one", asked)
    if part.train != type(part.train)():
        yield Broken("scenarios.train", "has no effect beside from: live, which takes its place; drop one", asked)
    if part.since and part.until and not unix_time(part.since) < unix_time(part.until):
        yield Broken("scenarios.until", f"{part.until!r} is not after since, {part.since!r}", ("scenarios.since",))
    if x.team.pettingzoo and not x.team.use:
        yield Broken("scenarios.from", "live: a PettingZoo environment has no recorded sessions", ("team",))


def seats(x: Experiment) -> Iterator[Broken]:
    """Every policy has a role, and no role has two."""
    if not x.policies:
        yield Broken("policies", "names no policy; a team needs one for each role, or one shared by some")
    owner: dict[str, str] = {}
    for name, policy in x.policies.items():
        if not name or not name.replace("-", "_").isidentifier():
            yield Broken(f"policies.{name}", "is no good name: use letters, digits, _ and -, and begin with a letter")
        if policy.roles == ():
            yield Broken(f"policies.{name}.roles", "is empty, so the policy has no role; name one, or drop the policy")
        for role in dict.fromkeys(policy.roles or (name,)):
            if role in owner and not PATTERN & set(role):
                message = f"role {role!r} has two policies, {owner[role]!r} and {name!r}; keep one"
                yield Broken(f"policies.{name}", message, (f"policies.{owner[role]}",))
            owner.setdefault(role, name)


def pay(x: Experiment) -> Iterator[Broken]:
    """There is something to learn from, once."""
    looked = ("team", "rewards.terms")
    terms = x.rewards.terms
    if x.team.use and x.team.pettingzoo:
        return
    if x.team.use and not terms:
        yield Broken("rewards.terms", "names no term, so nothing would be learnt; name one: terms: [{use: …}]", looked)
    if x.team.pettingzoo and terms:
        yield Broken("rewards.terms", "has no effect: a PettingZoo environment pays its own rewards; drop it", looked)
    for place, term in enumerate(terms):
        first = next(i for i, other in enumerate(terms) if other.use == term.use)
        if first < place:
            message = f"{term.use!r} is already rewards.terms.{first}; raise its weight instead"
            yield Broken(f"rewards.terms.{place}.use", message, ("rewards.terms",))


def no_idle_knob(x: Experiment) -> Iterator[Broken]:
    """A key that something else makes meaningless is refused."""
    if x.ppo.rollout_fragment_length and x.ppo.batch_mode == "complete_episodes":
        message = "has no effect with batch_mode complete_episodes; drop it, or set batch_mode: truncate_episodes"
        yield Broken("ppo.rollout_fragment_length", message, ("ppo.batch_mode",))
    if x.rewards.standardize.per == "none":
        for key in sorted(_changed(x.rewards.standardize) - {"per"}):
            yield Broken(f"rewards.standardize.{key}", "has no effect with per: none", ("rewards.standardize.per",))
    if x.collapse.action == "stop":
        for key in sorted(_changed(x.collapse) & {"rollback_lr", "rollbacks"}):
            yield Broken(f"collapse.{key}", "has no effect with action: stop", ("collapse.action",))
    if x.resources.dashboard and x.resources.ray_address:
        message = "has no effect with ray_address: a running cluster serves its own dashboard"
        yield Broken("resources.dashboard", message, ("resources.ray_address",))
    for name, policy in x.policies.items():
        if policy.kind == "encoder" and policy.features in ("minilm", "flat") and "feature_size" in _changed(policy):
            message = f"has no effect with features: {policy.features}, whose size is given"
            yield Broken(f"policies.{name}.feature_size", message, (f"policies.{name}.features",))


def sights(x: Experiment) -> Iterator[Broken]:
    """Text is read as text, arrays as arrays."""
    for name, policy in x.policies.items():
        if policy.kind != "encoder" or policy.features == "auto":
            continue
        key = f"policies.{name}.features"
        if x.team.pettingzoo and policy.features != "flat":
            yield Broken(key, f"{policy.features} reads text, and this environment shows arrays; drop it", ("team",))
        if x.team.use and policy.features == "flat":
            yield Broken(key, "flat reads arrays, and a team shows text; choose tfidf, hashing or minilm", ("team",))


def no_bus(x: Experiment) -> Iterator[Broken]:
    """An event bus that nothing would use is not taken silently, nor learners that there cannot be."""
    if x.redis != "embedded" and (x.team.pettingzoo or not x.gates.live):
        why = "gates.live is false" if x.team.use else "a PettingZoo environment is not run live"
        yield Broken("redis", f"has no effect: {why}, and only the gates need an event bus", ("gates.live", "team"))
    if x.resources.learners > 1:
        yield Broken("resources.learners", f"{x.resources.learners}: at most 1, as reward statistics have one place")


def sizes(x: Experiment) -> Iterator[Broken]:
    """Batches hold their parts."""
    ppo = x.ppo
    if ppo.minibatch_size > ppo.train_batch_size:
        message = (
            f"{ppo.minibatch_size} is larger than train_batch_size {ppo.train_batch_size}; lower it, or raise that"
        )
        yield Broken("ppo.minibatch_size", message, ("ppo.train_batch_size",))
    fragment = ppo.rollout_fragment_length or 1
    if fragment > ppo.train_batch_size:
        message = f"{fragment} is larger than train_batch_size {ppo.train_batch_size}; lower it"
        yield Broken("ppo.rollout_fragment_length", message, ("ppo.train_batch_size",))


def memory(x: Experiment) -> Iterator[Broken]:
    """What is asked for fits into the machine, by an estimate that errs on the low side."""
    if x.resources.ray_address:
        return  # other machines have other memories
    have = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for key, value, size, what in (*_sizes(x), *_network_sizes(x)):
        if size > have:
            estimate = f"{value} would take some {_amount(size)} of memory for {what}; this machine has {_amount(have)}"
            yield Broken(key, f"{estimate}: lower it")


def _sizes(x: Experiment) -> Iterator[tuple[str, str, int, str]]:
    """Key, value, bytes and what for."""
    runners, envs, batch = x.resources.env_runners, x.resources.envs_per_runner, x.ppo.train_batch_size
    yield "resources.env_runners", f"{runners:,}", runners * RUNNER_BYTES, "processes that play"
    yield "resources.envs_per_runner", f"{envs:,}", envs * EPISODE_BYTES, "episodes side by side"
    yield "ppo.train_batch_size", f"{batch:,}", batch * DECISION_BYTES, "a batch of decisions"


def _network_sizes(x: Experiment) -> Iterator[tuple[str, str, int, str]]:
    for name, policy in x.policies.items():
        if policy.kind != "encoder":
            continue
        widths, key = (policy.feature_size, *policy.hidden), f"policies.{name}"
        weights = sum(a * b for a, b in pairwise(widths))
        largest = "feature_size" if policy.feature_size >= max(policy.hidden, default=0) else "hidden"
        value = f"{policy.feature_size:,}" if largest == "feature_size" else f"[{', '.join(map(str, policy.hidden))}]"
        yield f"{key}.{largest}", value, weights * WEIGHT_BYTES, f"{weights:,} weights with their optimizer"
        batch = x.ppo.train_batch_size * policy.feature_size * 4
        yield f"{key}.feature_size", f"{policy.feature_size:,}", batch, "the features of a batch"


def _amount(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size < 1e12 else f"{size / 1e12:,.0f} TB"


def schedules(x: Experiment) -> Iterator[Broken]:
    """A schedule has a length, and goes the way it should."""
    for key, (start, end) in (("lr", x.ppo.lr), ("entropy_coeff", x.ppo.entropy_coeff)):
        if start != end and x.stop.iterations is None:
            message = "changes over the run, whose length is not known; set stop.iterations too"
            yield Broken(f"ppo.{key}", message, ("stop", "stop.iterations"))
    start, end = x.ppo.entropy_coeff
    if start < end:
        yield Broken("ppo.entropy_coeff", f"rises from {start:g} to {end:g}; it falls over the run, or stays")
    if x.ppo.lr[0] == 0:
        yield Broken("ppo.lr", "begins at 0, so nothing would be learnt; begin above 0")


def an_end(x: Experiment) -> Iterator[Broken]:
    """A run ends."""
    if x.stop.iterations is None and x.stop.minutes is None:
        reason = "score alone may never be reached" if x.stop.score is not None else "nothing is set, so it never would"
        yield Broken("stop", f"{reason}; set iterations or minutes", ("stop.iterations", "stop.minutes", "stop.score"))


def somebody_learns(x: Experiment) -> Iterator[Broken]:
    """Training trains something."""
    if x.policies and all(p.kind in ("scripted", "prompted") for p in x.policies.values()):
        kinds = " or ".join(sorted({p.kind for p in x.policies.values()}, reverse=True))
        yield Broken(
            "policies", f"are all {kinds}, so there is nothing to train; make one kind: encoder", ("policies",)
        )


def _changed(section: BaseModel) -> set[str]:
    """The keys that do not stand at their default."""
    fields = type(section).model_fields.items()
    return {key for key, f in fields if getattr(section, key) != f.get_default(call_default_factory=True)}


RULES: tuple[Rule, ...] = (
    one_team, held_out, scenario_keys, live_scenarios, seats, pay, no_idle_knob, sights, no_bus, sizes, memory,
    schedules, an_end, somebody_learns,
)  # fmt: skip
"""All of them, in the order of their messages."""
