"""What a language model policy costs: scoring calls beside re-encoding prompts, an update beside plain PyTorch."""

import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from bench.outcome import Claim, Outcome
from bench.rows import Options
from bench.runs import ROOT

FASTER, UPDATE, NEAR = 3.0, 1.25, 1e-4
"""Times faster than re-encoding; of plain PyTorch's time; how near to it, nat."""
PROMPT, CALLS, WORDS = 200, 8, 6
"""Tokens of a prompt; candidate calls; tokens of each."""
ROUNDS = 7
"""Timed rounds of each contestant, alternately; one more before them warms it up."""
STEPS = 600
"""Env steps of the batch that is learned from."""


def scoring(options: Options) -> Outcome:
    """Eight calls after a prompt of 200 tokens: as one tree, and each behind its own copy of the prompt."""
    import torch

    from policies.lm.tiny import TinyShape, make_tiny

    torch.set_num_threads(1)
    with TemporaryDirectory() as scratch:
        place = Path(scratch) / "tiny"
        make_tiny(place, TinyShape(hidden=128, layers=4), [f"tool number {i}" for i in range(500)])
        times, apart = _race(str(place), 2 if options.quick else ROUNDS)
    ours, alone = median(times[0]), median(times[1])
    return Outcome(
        claims=(
            Claim(what="times faster than re-encoding the prompt for each call", unit="×", measured=alone / ours,
                  target=FASTER),
            Claim(what="largest difference of a score", unit="nat", measured=apart, target=NEAR, at_least=False),
        ),
        figures={"shared_s": ours, "re_encoded_s": alone, "prompt_tokens": PROMPT, "calls": CALLS, "prompts": 8},
    )  # fmt: skip


def _race(path: str, rounds: int) -> tuple[tuple[list[float], list[float]], float]:
    """Seconds of both, and the largest difference."""
    import torch

    from policies.lm.playing import network_of
    from policies.lm.spec import LMSpec

    chance: Any = torch.Generator().manual_seed(0)
    calls = torch.randint(10, 250, (CALLS, WORDS), generator=chance)
    seen = torch.randint(10, 250, (8, PROMPT - 2), generator=chance)
    spec = LMSpec(path=path, head=(5,), tail=(6,), calls=tuple(tuple(c) for c in calls.tolist()), room=PROMPT)
    net = network_of(spec)
    legal = torch.ones(len(seen), CALLS, dtype=torch.bool)
    whole = torch.cat([torch.full((8, 1), 5), seen, torch.full((8, 1), 6)], 1).repeat_interleave(CALLS, 0)
    sequences = torch.cat([whole, calls.repeat(8, 1)], 1)

    def shared() -> Any:
        net.train()  # forgets what it kept of the prompt's head
        return net.scores(seen, legal)[0]

    def alone() -> Any:
        with net.weights.used() as model:
            logp = torch.log_softmax(model(sequences).logits[:, PROMPT - 1 : -1], -1)
        return logp.gather(-1, sequences[:, PROMPT:, None]).sum((1, 2)).view(8, CALLS)

    with torch.no_grad():
        times = _laps((shared, alone), rounds)
        apart = float((shared() - alone()).abs().max())
    return times, apart


def _laps(contestants: tuple[Callable[[], Any], Callable[[], Any]], rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of each, in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 1):
        for run, laps in zip(contestants, times, strict=True):
            began = perf_counter()
            run()
            if turn:
                laps.append(perf_counter() - began)
    return times


def update(options: Options) -> Outcome:
    """A PPO update of the supply chain's tiny models, one epoch; and the same rows forward and backward, plainly."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    with TemporaryDirectory() as scratch:
        learner, fragments = _learner(Path(scratch), options)
        rows = learner._batches(fragments)

        def ours() -> None:
            learner.update(episodes=fragments, num_epochs=1, minibatch_size=128, timesteps={})

        times = _laps((ours, lambda: _plain(learner, rows)), 1 if options.quick else ROUNDS)
    mine, plain = median(times[0]), median(times[1])
    count = sum(len(b["advantages"]) for b in rows.values())
    return Outcome(
        claims=(
            Claim(what="of plain PyTorch's time for the same tokens", unit="×", measured=mine / plain, target=UPDATE,
                  at_least=False),
            Claim(what="decisions learned from, one epoch", unit="decisions/s", measured=count / mine),
        ),
        figures={"ours_s": mine, "plain_s": plain, "decisions": count},
    )  # fmt: skip


def _learner(scratch: Path, options: Options) -> tuple[Any, Any]:
    """A learner, and a batch that its sampler made."""
    from assembly.build import Build
    from assembly.loading import load
    from trainers.lm_prepare import prompts
    from trainers.measure import measure
    from trainers.rllib.algorithm import algorithm_config, seats

    file = ROOT / "experiments" / "supply_chain_tiny_lm.yaml"
    cold = [f"policies.{p}.warmup=null" for p in ("triage", "investigator", "resolver")]
    build = Build(load(file, [*cold, *options.overrides]), file.parent)
    seated = seats(build, prompts(build, measure(build, 20 if options.quick else 100).texts, scratch))
    config: Any = algorithm_config(build, seated, build.standardizer())
    runner = config.env_runner_cls(config=config)
    learner = config.build_learner(spaces=runner.get_spaces())
    learner.before_gradient_based_update(timesteps={})
    return learner, runner.sample(num_timesteps=60 if options.quick else STEPS)


def _plain(learner: Any, rows: Any) -> None:
    """Every row's prompt and all its calls as one plain sequence: cross-entropy, backward, a step of Adam."""
    import torch

    for mid, batch in rows.items():
        pi = learner.module[mid].pi
        adam = torch.optim.Adam(pi.parameters(), lr=1e-4, fused=True)
        for minibatch in batch["obs"]["tokens"].long().split(128):
            part = minibatch[(minibatch >= 0).sum(1).argsort()]
            for some in part.split(64):
                _sequence_loss(pi, some).backward()
            adam.step()
            adam.zero_grad(set_to_none=True)


def _sequence_loss(pi: Any, tokens: Any) -> Any:
    import torch
    from torch.nn.functional import cross_entropy

    seen = tokens[:, : int((tokens >= 0).sum(1).max())].clamp(min=0)
    spec = pi.spec
    after = torch.tensor([*spec.tail, *(t for call in spec.calls for t in call)])
    before = torch.tensor(spec.head)
    ids = torch.cat([before.expand(len(seen), -1), seen, after.expand(len(seen), -1)], 1)
    with pi.weights.used() as model:
        hidden = model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state[:, -len(after) - 1 : -1]
        logits = model.get_output_embeddings()(hidden)
    return cross_entropy(logits.flatten(0, 1), ids[:, -len(after) :].flatten())
