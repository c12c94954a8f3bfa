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
from trainers.checkpoints import Checkpoint, Checkpoints, Damaged, TrainerState
from trainers.evaluate import evaluation, try_out
from trainers.figures import iteration_report
from trainers.missing import surely, told
from trainers.prepare import Prepared
from trainers.rllib.algorithm import seats as seats_of
from trainers.rllib.chance import NonFinite
from trainers.rllib.engine import Engine, Iterated, TrainingFault
from trainers.rllib.learner import NothingToLearn
from trainers.watch import Watch


class Listener(Protocol):
    """Whatever is told of each iteration."""

    def show(self, report: IterationReport, given: Iterated) -> None:
        """Take note of an iteration."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """Why training ended."""

    status: str
    """``done``, ``limit``, ``interrupted``, ``collapsed``, ``missing_rewards``, ``audit`` or ``failed``."""
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
        self.state = TrainerState(cost_usd=prepared.cost_usd)
        self.alarm = Alarm(self.experiment.collapse, expected(build.team, build.learners, prepared.compared.returns))
        self.watch = Watch(build, say)
        self.evaluated: EvaluationReport | None = None
        """The last evaluation of this process."""
        self.engine = self._engine(1.0)
        for name, imitated in self.engine.imitated.items():
            say(f"warm start: {name} {imitated.told()}")
        self.cached = 0
        """Replies of models in training that had been given before."""
        self.why: dict[str, str] = {}
        """Why rewards were missing, by term."""
        self._started, self._before = time.monotonic(), 0.0

    def _engine(self, lr_scale: float) -> Engine:
        seats = seats_of(self.build, self.prepared.featurizers)
        return Engine(self.build, seats, self.prepared.standardizer, lr_scale)

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint. Raises Damaged if RLlib cannot make anything of it."""
        if checkpoint.state.lr_scale != self.state.lr_scale:
            self.engine.close()
            self.engine = self._engine(checkpoint.state.lr_scale)
        try:
            self.engine.restore(checkpoint.algorithm)
        except Exception as error:
            raise Damaged(checkpoint.path, f"RLlib cannot restore it: {type(error).__name__}: {error}") from error
        self.state = checkpoint.state
        self.alarm.since = dict(checkpoint.state.trouble)
        self.watch.load(checkpoint.state.watched)
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
        if self.cached:
            self.say(f"{self.cached:,} replies of models had been given before, and cost nothing")
        return self._missing_in_all(ended)

    def _iterate(self) -> Ended | None:
        began = time.monotonic()
        given = self.engine.iterate()
        seconds = time.monotonic() - began
        tally = given.tally
        self.cached += tally.cached
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
            listener.show(report, given)
        self.why.update(tally.why)
        before = self.state.rollbacks
        wrong = self._missing() or self._hacked(report, tally) or self._alarmed(report, tally)
        if wrong or self.state.rollbacks > before:
            return wrong
        self.state = replace(self.state, trouble=dict(self.alarm.since), watched=self.watch.state())
        if self._due(self.experiment.checkpoints.every) or self._improved(evaluated):
            self.save()
        return self._finished(evaluated)

    def _due(self, every: int) -> bool:
        return self.state.iteration % every == 0

    def _evaluate(self) -> EvaluationReport:
        episodes = min(self.experiment.evaluation.episodes, self.build.held_out or math.inf)
        tried = try_out(self.build, self.engine.seats(), range(int(episodes)))
        self.state = replace(self.state, cost_usd=self.state.cost_usd + tried.cost_usd)
        found = self.evaluated = evaluation(tried, self.prepared.compared)
        value = found.score if found.score is not None else found.return_mean
        if value is not None and (self.state.best_score is None or value > self.state.best_score):
            self.state = replace(self.state, best_score=value, best_iteration=self.state.iteration)
        return found

    def _improved(self, evaluated: EvaluationReport | None) -> bool:
        return evaluated is not None and self.state.best_iteration == self.state.iteration

    # -- reasons to end

    def _missing(self) -> Ended | None:
        limit, state = self.experiment.rewards.missing_limit, self.state
        if not surely(state.missing, state.episodes, limit):
            return None
        return Ended("missing_rewards", told(state.missing, state.episodes, limit, self.why), state)

    def _missing_in_all(self, ended: Ended) -> Ended:
        """The end of a run, judged by the plain share: there will be no more episodes to be sure by."""
        limit, state = self.experiment.rewards.missing_limit, self.state
        if ended.status == "interrupted" or state.missing <= limit * state.episodes:
            return ended
        return Ended("missing_rewards", told(state.missing, state.episodes, limit, self.why), state)

    def _hacked(self, report: IterationReport, tally: Tally) -> Ended | None:
        reason = self.watch.look(report, tally)
        return Ended("audit", reason, self.state) if reason else None

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
            trouble={},
        )
        self.checkpoints.back_to(good, self.state)
        self.alarm.since = {}
        self.watch.load(good.state.watched)
        for listener in self.listeners:
            back = getattr(listener, "back_to", None)
            if back is not None:
                back(self.state)

    def _finished(self, evaluated: EvaluationReport | None = None) -> Ended | None:
        stop, state, score = self.experiment.stop, self.state, evaluated.score if evaluated else None
        if self.interrupted():
            return Ended("interrupted", "stopped on request", state)
        ends = (
            (stop.iterations, state.iteration, f"{state.iteration} iterations"),
            (stop.minutes, state.seconds / 60, f"{state.seconds / 60:.1f} minutes"),
            (stop.score, score, f"held-out score {score or 0:.3f}"),
        )
        for end, now, told_as in ends:
            if end is not None and now is not None and now >= end:
                return Ended("done", told_as, state)
        return self._at_a_limit()

    def _at_a_limit(self) -> Ended | None:
        """Whether one more iteration like those so far would go over what the file lets the run spend."""
        limits, state = self.experiment.limits, self.state
        usd, tokens = self._an_iteration()
        if limits.usd is not None and state.cost_usd + usd > limits.usd:
            left = f"{state.cost_usd:,.2f} of {limits.usd:,.2f} US dollars spent, an iteration takes {usd:,.2f}"
            return Ended("limit", f"limits.usd: {left}", state)
        if limits.tokens is not None and state.tokens + tokens > limits.tokens:
            left = f"{state.tokens:,} of {limits.tokens:,} used, an iteration takes {tokens:,.0f}"
            return Ended("limit", f"limits.tokens: {left}", state)
        return None

    def _an_iteration(self) -> tuple[float, float]:
        """What an iteration takes, in US dollars and tokens: the mean so far; before the first, as random play does."""
        done, prepared = self.state.iteration, self.prepared
        if not done:
            episodes = self.experiment.ppo.train_batch_size / max(1.0, prepared.steps_per_episode)
            return episodes * prepared.usd_per_episode, 0.0
        return (self.state.cost_usd - prepared.cost_usd) / done, self.state.tokens / done

    def save(self) -> Checkpoint:
        """Write a checkpoint of this moment, unless the last one is of this moment."""
        last = self.checkpoints.last()
        if last is not None and last.state.iteration == self.state.iteration:
            return last
        return self.checkpoints.save(self.state, self.engine.save)

    def close(self) -> None:
        """Stop the engine's processes."""
        self.engine.close()
