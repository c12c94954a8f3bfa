"""The warm start: before PPO, language models learn to call what somebody else called (behaviour cloning)."""

import json
import logging
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from assembly.build import Build
from assembly.lm_sections import CausalLM, Warmup
from policies.lm.adapters import Owned, forget_base
from policies.lm.batches import parts_of
from policies.lm.layout import PAD
from policies.lm.loading import TINY
from policies.lm.network import Network, ValueHead
from policies.lm.writing import Writer
from runtime.errors import RepertoryError
from runtime.seams import digest
from trainers.demonstrations import Demonstrated, Shown, demonstrations
from trainers.rllib.connector import Standardizer

log = logging.getLogger(__name__)
REPORT = "warmup.json"
"""Beside the models: how each policy imitates."""
RISE = 0.1
"""Share of the steps over which the step size rises: Adam's first steps would else be its wildest."""
GRADIENT = 1.0
"""Bound on the gradient's norm."""


Nets = Mapping[str, Network | Writer]
Heads = Mapping[str, ValueHead]
VALUE_WEIGHT = 0.5
"""Weight of the critic's squared error beside the cross-entropy."""


class NothingToImitate(RepertoryError):
    """A warm start has no decision of a policy to learn from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Imitated:
    """How a policy imitates after its warm start."""

    decisions: int
    agreement: float
    """Share of the last epoch's decisions in which its likeliest call was the one shown, before the step."""
    loss: float
    """Mean cross-entropy over the last epoch, nat."""
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """Calls that were no legal candidates, by tool: nothing was learnt from them."""

    def told(self) -> str:
        """The same in words."""
        return f"imitates {self.decisions} decisions, and calls the same in {self.agreement:.0%} of them"


def warm_up(build: Build, seats: Mapping[str, Any], standardizer: Standardizer | None = None) -> dict[str, Imitated]:
    """Give every policy its warm start that has none yet; what it leaves, samplers and learner begin with.

    Args:
        build: the experiment.
        seats: of the learning policies, by name.
        standardizer: in whose units critics learn what the expert's calls came to; nothing of it changes.
    """
    waiting = {n: p for n, p in build.learned.items() if isinstance(p, CausalLM) and _waits(p, seats[n])}
    done: dict[str, Imitated] = {}
    for names in _together(waiting, seats):
        settings = waiting[names[0]].warmup
        assert settings is not None
        own = {n: seats[n] for n in names}
        found = demonstrations(build, own, settings, standardizer)
        lacking = [n for n in names if not len(found.shown.get(n, ()))]
        if lacking:
            why = "".join(f"; {line}" for line in found.told())
            raise NothingToImitate(f"warmup.from {settings.source} shows no decision for {', '.join(lacking)}{why}")
        nets = _shared(own) if waiting[names[0]].model == TINY else {n: s.actor() for n, s in own.items()}
        done |= _imitate(own, nets, found, settings, build.experiment.seed)
    return done


def _waits(policy: CausalLM, seat: Any) -> bool:
    return policy.warmup is not None and not Path(seat.spec.start).is_file()


def _together(waiting: Mapping[str, CausalLM], seats: Mapping[str, Any]) -> list[list[str]]:
    """Policies that start from the same made model learn together: it is one model until PPO begins."""
    groups: dict[Any, list[str]] = defaultdict(list)
    for name, policy in waiting.items():
        key = (seats[name].spec.path, policy.warmup) if policy.model == TINY else name
        groups[key].append(name)
    return list(groups.values())


# -- how it is learned


def _imitate(
    seats: Mapping[str, Any],
    nets: Nets,
    found: Demonstrated,
    settings: Warmup,
    seed: int,
) -> dict[str, Imitated]:
    """Train the policies, and write down what they start from."""
    heads = {n: ValueHead(net.weights.hidden_size) for n, net in nets.items()}
    learnt = _epochs(nets, heads, found.shown, settings, seed)
    done = {n: replace(i, left_out={**found.left_out.get(n, {})}) for n, i in learnt.items()}
    for line in found.told():
        log.warning("warm start from %s leaves out %s", settings.source, line)
    _keep(seats, nets, heads, done)
    return done


def _shared(seats: Mapping[str, Any]) -> dict[str, Network | Writer]:
    """Networks of all these policies on one model, all of which trains."""
    first = next(iter(seats.values())).spec
    weights = Owned(first.path)
    return {n: (Writer if s.spec.mode == "generate" else Network)(s.spec, weights) for n, s in seats.items()}


def _epochs(nets: Nets, heads: Heads, shown: Mapping[str, Shown], settings: Warmup, seed: int) -> dict[str, Imitated]:
    chance = np.random.default_rng(digest("warm start", seed))
    modules = (*nets.values(), *heads.values())
    parameters = list(dict.fromkeys(p for module in modules for p in module.parameters() if p.requires_grad))
    steps = settings.epochs * sum(-(-len(s) // settings.minibatch) for s in shown.values())
    adam = torch.optim.AdamW(parameters, lr=settings.lr, weight_decay=0.0)
    pace = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: _pace(step, steps))
    last: dict[str, list[tuple[int, float, int]]] = {}
    for _ in range(settings.epochs):
        last = defaultdict(list)
        for name, rows in _minibatches(shown, settings.minibatch, chance):
            part = shown[name].at(rows)
            loss, right = _step(nets[name], heads[name], part, settings.smoothing)
            torch.nn.utils.clip_grad_norm_(parameters, GRADIENT)
            adam.step()
            pace.step()
            adam.zero_grad(set_to_none=True)
            last[name].append((len(part), loss, right))
    return {n: _summary(len(shown[n]), figures) for n, figures in last.items()}


def _pace(step: int, steps: int) -> float:
    """The step size's course: up in a straight line, then down to 0 in another."""
    rise = max(1.0, RISE * steps)
    return min((step + 1) / rise, max(0.0, (steps - step) / max(1.0, steps - rise)))


def _minibatches(shown: Mapping[str, Shown], size: int, chance: np.random.Generator) -> list[tuple[str, Tensor]]:
    """One epoch of all policies, mixed."""
    parts: list[tuple[str, Tensor]] = []
    for name, decisions in sorted(shown.items()):
        order = torch.from_numpy(chance.permutation(len(decisions)))
        parts += [(name, rows) for rows in order.split(size)]
    return [parts[i] for i in chance.permutation(len(parts))]


def _step(net: Network | Writer, head: ValueHead, shown: Shown, smoothing: float) -> tuple[float, int]:
    """Gradients of one minibatch; its mean loss, and how many calls were foreseen."""
    total, right = 0.0, 0
    for at in parts_of(shown.tokens, net.block, net.spec.chunk):
        part = shown.at(at)
        if isinstance(net, Writer):
            loss, hits, hidden = written_loss(net, part, smoothing)
        else:
            scores, hidden = net.scores(part.tokens, part.legal)
            loss, hits = cross_entropy(scores, part, smoothing), int((scores.argmax(1) == part.calls).sum())
        share = len(part) / len(shown)
        values = head(hidden.detach() if net.spec.detached else hidden)
        ((loss + VALUE_WEIGHT * critic_loss(values, part)) * share).backward()
        total += loss.item() * share
        right += hits
    return total, right


def critic_loss(values: Tensor, shown: Shown) -> Tensor:
    """Mean squared error of the critic, where it is known what came of a decision."""
    known = shown.returns.isfinite()
    return (values[known] - shown.returns[known]).square().sum() / max(1, int(known.sum()))


def written_loss(net: Writer, shown: Shown, smoothing: float) -> tuple[Tensor, int, Tensor]:
    """Mean of −log p of the calls' tokens, nat, less a share of their entropy.

    Also how many calls are likelier than not, and each prompt's last hidden state.
    """
    calls = pad_sequence([torch.tensor(net.spec.calls[c]) for c in shown.calls.tolist()], True, PAD)
    found = net.follow(shown.tokens, shown.legal, calls)
    logp = found.logp.sum(1)
    loss = -((1 - smoothing) * logp + smoothing * found.entropy.sum(1)).mean()
    return loss, int((logp > math.log(0.5)).sum()), found.hidden[:, 0]


def cross_entropy(scores: Tensor, shown: Shown, smoothing: float) -> Tensor:
    """Mean of −Σ aim · log p, nat; the aim is the call shown, and a share of it is spread over all legal ones."""
    logp = torch.log_softmax(scores, -1)
    legal = shown.legal.float()
    even = (logp.masked_fill(~shown.legal, 0.0) * legal).sum(1) / legal.sum(1)
    told = logp.gather(1, shown.calls[:, None]).squeeze(1)
    return -((1 - smoothing) * told + smoothing * even).mean()


def _summary(decisions: int, figures: Sequence[tuple[int, float, int]]) -> Imitated:
    rows = sum(n for n, _, _ in figures)
    return Imitated(
        decisions=decisions,
        agreement=sum(r for _, _, r in figures) / rows,
        loss=sum(n * loss for n, loss, _ in figures) / rows,
    )


# -- what is left


def _keep(seats: Mapping[str, Any], nets: Nets, heads: Heads, done: Mapping[str, Imitated]) -> None:
    """Write the made model that learned, or each policy's own weights; the file that says it is done comes last."""
    from safetensors.torch import save_file

    one = len({id(n.weights) for n in nets.values()}) == 1 and next(iter(seats.values())).spec.made
    if one:
        path = next(iter(seats.values())).spec.path
        with next(iter(nets.values())).weights.used() as model:
            model.save_pretrained(path)
        forget_base(path)
    for name, seat in seats.items():
        start = Path(seat.spec.start)
        own = {} if one else {f"pi.{k}": v for k, v in nets[name].state_dict().items()}
        critic = {f"vf.{k}": v for k, v in heads[name].state_dict().items()}
        start.parent.mkdir(parents=True, exist_ok=True)
        report = start.parent / REPORT
        known = json.loads(report.read_text()) if report.is_file() else {}
        report.write_text(json.dumps({**known, name: asdict(done[name])}, indent=1))
        unfinished = start.with_suffix(".new")
        save_file({k: v.contiguous().clone() for k, v in (own | critic).items()}, unfinished)
        unfinished.rename(start)
