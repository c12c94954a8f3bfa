"""The training loop: iterate, look, evaluate, write down, keep; stop for a reason and say which."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from assembly.build import Build
from envs.tally import Tally
from telemetry.scalars import EvaluationReport, IterationReport
from trainers.alarm import Alarm, expected
from trainers.checkpoints import Checkpoint, Checkpoints, NoCheckpoint, TrainerState
from trainers.evaluate import evaluation, try_out
from trainers.figures import iteration_report
from trainers.prepare import Prepared
from trainers.rllib.algorithm import seats as seats_of
from trainers.rllib.chance import NonFinite
from trainers.rllib.engine import Engine, TrainingFault
from trainers.rllib.learner import NothingToLearn

EARLY_EPISODES = 1000
"""Episodes before the share of missing rewards is judged: below, one missing reward weighs too much."""


class Listener(Protocol):
    """Whatever is told of each iteration."""

    def show(self, report: IterationReport, tally: Tally) -> None:
        """Take note of an iteration."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """Why training ended."""

    status: str
    """``done``, ``limit``, ``interrupted``, ``collapsed``, ``missing_rewards`` or ``failed``."""
    reason: str
    state: TrainerState


class Loop:
    """Trains an experiment from where its run directory stands.

    Args:
        build: the experiment.
        prepared: what was settled before.
        checkpoints: of the run directory.
        listeners: told of each iteration, in order: the durable ones first.
        interrupted: asked after each iteration whether the user wants to stop.
        say: prints a line to the user.
    """

    def __init__(
        self,
        build: Build,
        prepared: Prepared,
        checkpoints: Checkpoints,
        listeners: Iterable[Listener],
        interrupted: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        self.build, self.prepared, self.checkpoints = build, prepared, checkpoints
        self.listeners, self.interrupted, self.say = list(listeners), interrupted, say
        self.experiment = build.experiment
        self.state = TrainerState()
        self.alarm = Alarm(self.experiment.collapse, expected(build.team, build.learners, prepared.compared.returns))
        self.engine = self._engine(1.0)
        self._started, self._before = time.monotonic(), 0.0

    def _engine(self, lr_scale: float) -> Engine:
        seats = seats_of(self.build, self.prepared.featurizers)
        return Engine(self.build, seats, self.prepared.standardizer, lr_scale)

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint."""
        if checkpoint.state.lr_scale != self.state.lr_scale:
            self.engine.close()
            self.engine = self._engine(checkpoint.state.lr_scale)
        self.engine.restore(checkpoint.algorithm)
        self.state = self._before_state = checkpoint.state
        self._before = checkpoint.state.seconds

    def run(self) -> Ended:
        """Train until something ends it."""
        self._started = time.monotonic()
        ended = self._finished()
        while ended is None:
            try:
                ended = self._iterate()
            except NonFinite as error:
                ended = self._collapsed(str(error))
            except (TrainingFault, NothingToLearn) as error:
                ended = Ended("failed", str(error), self.state)
        return ended

    def _iterate(self) -> Ended | None:
        began = time.monotonic()
        given = self.engine.iterate()
        seconds = time.monotonic() - began
        tally = given.tally
        self.state = replace(
            self.state,
            iteration=self.state.iteration + 1,
            env_steps=self.state.env_steps + given.env_steps,
            cost_usd=self.state.cost_usd + tally.cost_usd,
            tokens=self.state.tokens + tally.tokens,
            episodes=self.state.episodes + tally.episodes,
            missing=self.state.missing + tally.missing,
        )
        evaluated = self._evaluate() if self._due(self.experiment.evaluation.every) else None
        self.state = replace(self.state, seconds=self._before + time.monotonic() - self._started)
        report = iteration_report(self.build, self.state, given, seconds, evaluated)
        for listener in self.listeners:
            listener.show(report, tally)
        wrong = self._missing() or self._alarmed(report, tally)
        if wrong:
            return wrong
        if self._due(self.experiment.checkpoints.every) or self._improved(evaluated):
            self.save()
        return self._finished(evaluated)

    def _due(self, every: int) -> bool:
        return self.state.iteration % every == 0

    def _evaluate(self) -> EvaluationReport:
        episodes = min(self.experiment.evaluation.episodes, self.build.held_out or math.inf)
        tried = try_out(self.build, self.engine.seats(), range(int(episodes)))
        found = evaluation(tried, self.prepared.compared)
        value = found.score if found.score is not None else found.return_mean
        if value is not None and (self.state.best_score is None or value > self.state.best_score):
            self.state = replace(self.state, best_score=value, best_iteration=self.state.iteration)
        return found

    def _improved(self, evaluated: EvaluationReport | None) -> bool:
        return evaluated is not None and self.state.best_iteration == self.state.iteration

    # -- reasons to end

    def _missing(self) -> Ended | None:
        limit = self.experiment.rewards.missing_limit
        if self.state.episodes < EARLY_EPISODES or self.state.missing <= limit * self.state.episodes:
            return None
        share = self.state.missing / self.state.episodes
        return Ended(
            "missing_rewards", f"{share:.1%} of episodes have a missing reward (limit {limit:.1%})", self.state
        )

    def _alarmed(self, report: IterationReport, tally: Tally) -> Ended | None:
        reason = self.alarm.look(report, tally)
        return self._collapsed(reason) if reason else None

    def _collapsed(self, reason: str) -> Ended | None:
        settings = self.experiment.collapse
        good = self._last_good()
        if settings.action == "rollback" and good is not None and self.state.rollbacks < settings.rollbacks:
            self._roll_back(good, reason)
            return None
        where = f"; last good checkpoint: {good.path}" if good else "; there is no good checkpoint yet"
        return Ended("collapsed", f"{reason}{where}", self.state)

    def _last_good(self) -> Checkpoint | None:
        """The newest checkpoint from before the trouble began."""
        began = self.alarm.began() or self.state.iteration + 1
        good = [c for c in self.checkpoints if c.state.iteration < began]
        return good[-1] if good else None

    def _roll_back(self, good: Checkpoint, reason: str) -> None:
        scale = self.state.lr_scale * self.experiment.collapse.rollback_lr
        rollbacks, spent = self.state.rollbacks + 1, self.state
        self.say(
            f"{reason}: back to iteration {good.state.iteration} with {scale:g} of the learning rate "
            f"(rollback {rollbacks} of {self.experiment.collapse.rollbacks})"
        )
        self.engine.close()
        self.engine = self._engine(scale)
        self.engine.restore(good.algorithm)
        self.state = replace(
            good.state,
            lr_scale=scale,
            rollbacks=rollbacks,
            seconds=spent.seconds,
            cost_usd=spent.cost_usd,
            tokens=spent.tokens,
        )
        self.alarm.forget()
        for listener in self.listeners:
            back = getattr(listener, "back_to", None)
            if back is not None:
                back(self.state)

    def _finished(self, evaluated: EvaluationReport | None = None) -> Ended | None:
        stop, limits, state = self.experiment.stop, self.experiment.limits, self.state
        if self.interrupted():
            return Ended("interrupted", "interrupted", state)
        if stop.iterations is not None and state.iteration >= stop.iterations:
            return Ended("done", f"{state.iteration} iterations", state)
        if stop.minutes is not None and state.seconds >= 60 * stop.minutes:
            return Ended("done", f"{stop.minutes:g} minutes", state)
        if stop.score is not None and evaluated and evaluated.score is not None and evaluated.score >= stop.score:
            return Ended("done", f"held-out score {evaluated.score:.3f}", state)
        if limits.usd is not None and state.cost_usd >= limits.usd:
            return Ended("limit", f"limits.usd: {state.cost_usd:.2f} of {limits.usd:g} US dollars spent", state)
        if limits.tokens is not None and state.tokens >= limits.tokens:
            return Ended("limit", f"limits.tokens: {state.tokens:,} of {limits.tokens:,} used", state)
        return None

    def save(self) -> Checkpoint:
        """Write a checkpoint of this moment."""
        try:
            last = self.checkpoints.last()
        except NoCheckpoint:
            last = None
        if last is not None and last.state.iteration == self.state.iteration:
            return last
        return self.checkpoints.save(self.state, self.engine.save)

    def close(self) -> None:
        """Stop the engine's processes."""
        self.engine.close()
