"""The loop that steers: it counts outcomes in, judges, and moves traffic. It may be killed at any moment.

What has been counted, and what has been decided, is saved before anything is done. A decision that was saved and maybe
not done is done by whoever comes next, and doing it twice does no more than once.
"""

import logging
import threading
import uuid
from collections.abc import Mapping

from sqlalchemy.engine import Connection

from runtime.seams import Clock, now
from runtime.store import Store
from serving.errors import ServingError, UnknownVersion
from serving.rollout.judge import judged
from serving.rollout.kept import SESSION, Docket, News, NotTheJudge, docket, hold, news, save, take
from serving.rollout.plan import Plan
from serving.rollout.settling import Versions, sweep
from serving.rollout.tables import make_tables
from serving.rollout.trial import Decision, Trial
from serving.steering import Steering

BY = "rollout"
"""Under which name its changes stand in the history."""
logger = logging.getLogger(__name__)


class Controller:
    """Judges the rollouts of one team. Any number may run; one at a time does the work.

    Args:
        store: where sessions' records and feedback are.
        team: whose versions.
        plan: by which steps, and what counts as worse.
        steering: moves traffic.
        versions: what is known of versions.
        clock: the time.
    """

    def __init__(
        self,
        store: Store,
        team: str,
        plan: Plan,
        steering: Steering,
        versions: Versions | None = None,
        clock: Clock = now,
    ) -> None:
        self.team, self.plan = team, plan
        self._store, self._steering, self._clock = make_tables(store), steering, clock
        self._versions = versions or Versions()
        self.holder = uuid.uuid4().hex

    def run(self, stop: threading.Event) -> None:
        """Judge until told to stop. A round that fails is told in the log, and tried again."""
        while not stop.wait(self.plan.every_s):
            try:
                self.look()
            except NotTheJudge:
                continue
            except Exception:
                logger.exception("a round of judging the rollouts of %s failed", self.team)

    def look(self) -> dict[str, Decision]:
        """Count in what is new, judge each version on trial, and do what is decided; the decisions by version.

        Raises:
            NotTheJudge: another process does this now.
        """
        self._finish()
        try:
            current, ratios = self._steering.current(self.team), dict(self._steering.ratios(self.team))
        except UnknownVersion:  # nothing has been promoted yet: there is nothing to compare with
            return {}
        self._store.write(lambda c: self._attend(c, current, ratios))
        while self._store.write(self._count):
            pass
        decisions = self._store.write(self._judge)
        self._finish()
        return decisions

    # -- each of these is one transaction, and does nothing else

    def _mine(self, connection: Connection) -> Docket:
        hold(connection, self.team, self.holder, self._clock())
        return docket(connection, self.team)

    def _attend(self, connection: Connection, current: str, ratios: Mapping[str, float]) -> None:
        """Trials begin and end with canaries; whoever changes a share by hand is followed."""
        kept = self._mine(connection)
        tried = {v: ratio for v, ratio in ratios.items() if ratio > 0 and v != current}
        for version, trial in list(kept.trials.items()):
            if version not in tried or trial.baseline != current:
                del kept.trials[version]
            elif trial.ratio != tried[version]:
                trial.moved(tried[version])
        for version, ratio in tried.items():
            if version not in kept.trials:
                kept.trials[version] = Trial.begun(version, current, ratio, self._clock(), self.plan)
        save(connection, self.team, kept, self._clock())

    def _count(self, connection: Connection) -> int:
        """Count some news in; how many there were."""
        kept = self._mine(connection)
        swept = sweep(connection, self.team, kept, self._versions, self._clock())
        fresh = news(connection, self.team)
        for each in fresh:
            for trial in kept.trials.values():
                self._count_in(trial, each)
        take(connection, fresh)
        save(connection, self.team, kept, self._clock())
        return swept + len(fresh)

    def _count_in(self, trial: Trial, each: News) -> None:
        if each.aspect == SESSION:
            trial.ended(each.outcome)
        elif each.value is not None and each.aspect == self.plan.reward.source:
            trial.rewarded(each.outcome, each.value)

    def _judge(self, connection: Connection) -> dict[str, Decision]:
        """Decide; what is more than holding is saved before it is done."""
        kept = self._mine(connection)
        decisions = {version: judged(self.plan, trial) for version, trial in kept.trials.items()}
        for version, decision in decisions.items():
            kept.trials[version].pending = decision if decision.action != "hold" else None
        save(connection, self.team, kept, self._clock())
        return decisions

    def _done(self, connection: Connection, version: str, decision: Decision, *, done: bool) -> None:
        kept = self._mine(connection)
        trial = kept.trials.get(version)
        if trial is None or trial.pending != decision:
            return
        if not done:
            trial.pending = None
        elif decision.action == "step":
            trial.moved(decision.ratio)
        else:
            del kept.trials[version]
        save(connection, self.team, kept, self._clock())

    # -- traffic

    def _finish(self) -> None:
        """Do what has been decided and perhaps not been done."""
        kept = self._store.write(self._mine)
        for version, trial in kept.trials.items():
            if trial.pending is not None:
                self._carry_out(version, trial.pending)

    def _carry_out(self, version: str, decision: Decision) -> None:
        """Where it is refused, such as a share that others have taken, it is judged again in the next round."""
        try:
            self._move(version, decision)
        except ServingError as error:
            logger.warning("%s of %s %s was refused: %s", decision.action, self.team, version, error)
            self._store.write(lambda c: self._done(c, version, decision, done=False))
            return
        self._store.write(lambda c: self._done(c, version, decision, done=True))

    def _move(self, version: str, decision: Decision) -> None:
        """Move traffic, unless it has been moved already, or somebody else has ended the trial since."""
        ratio = self._steering.ratios(self.team).get(version)
        if ratio is None:
            return
        if decision.action == "step" and ratio != decision.ratio:
            self._steering.canary(self.team, version, decision.ratio, by=BY, why=decision.why)
        elif decision.action == "promote":
            self._steering.promote(self.team, version, by=BY, why=decision.why)
        elif decision.action == "rollback":
            self._steering.rollback(self.team, version, by=BY, why=decision.why, pinned=self.plan.pinned)
