"""The audit during training: each iteration's figures are shown to the watcher that looks for a hacked reward."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from assembly.build import Build
from envs.tally import Tally
from rewards.audit.findings import Finding
from rewards.audit.hacking import Hacking, TrainingFigures
from telemetry.scalars import IterationReport
from trainers.evaluate import NO_TOOL

CHECK = "hacking"


class Watch:
    """Looks at every iteration of a team; an environment without records has nothing to show it.

    Args:
        build: the experiment.
        say: prints a line to the user.
    """

    def __init__(self, build: Build, say: Callable[[str], None]) -> None:
        self._outcomes = {w.term.name for w in build.judge.terms if w.term.kind == "outcome"}
        self._waived = {w.check: w.reason for w in build.experiment.rewards.audit.waive}
        self._say = say
        self._hacking = Hacking()
        self._said: set[str] = set()
        self._score: float | None = None

    def look(self, report: IterationReport, tally: Tally) -> str | None:
        """Why the run must stop, or None. A warning is said once."""
        if report.evaluation is not None:
            self._score = report.evaluation.score
        figures = self._figures(report, tally)
        if figures is None:
            return None
        found = self._hacking.seen(figures)
        for finding in found:
            self._tell(finding)
        errors = [f for f in found if f.severity == "error"]
        return None if CHECK in self._waived else _reason(errors)

    def _tell(self, finding: Finding) -> None:
        kind = f"{finding.severity} {finding.message.partition(':')[0]}"
        if kind not in self._said:
            self._said.add(kind)
            waived = f" (waived: {self._waived[CHECK]})" if CHECK in self._waived else ""
            self._say(f"audit {finding.severity}{waived}, {CHECK}: {finding.message} -> {finding.remedy}")

    def _figures(self, report: IterationReport, tally: Tally) -> TrainingFigures | None:
        if len(tally.returns) < 2 or not tally.episodes:
            return None
        outcomes = [v for name, v in tally.terms.items() if name in self._outcomes]
        called = sum(n for (_, tool), n in tally.calls.items() if tool not in NO_TOOL)
        return TrainingFigures(
            iteration=report.iteration,
            env_steps=report.env_steps,
            return_mean=float(np.mean(tally.returns)),
            return_std=float(np.std(tally.returns)),
            outcome_mean=sum(outcomes) / tally.episodes if outcomes else None,
            success_rate=tally.successes / tally.episodes,
            held_out=self._score,
            text_length=tally.written / tally.episodes if tally.written else None,
            tool_calls=called / tally.episodes,
            repeated_calls=tally.repeated / tally.episodes,
        )

    def state(self) -> dict[str, Any]:
        """All that it remembers, as JSON."""
        return {"hacking": self._hacking.state(), "score": self._score}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` gave; from nothing, begin again."""
        self._hacking = Hacking.from_state(state["hacking"]) if state else Hacking()
        self._score = state["score"] if state else None


def _reason(errors: Sequence[Finding]) -> str | None:
    return "; ".join(f"{CHECK}: {f.message}" for f in errors) or None
