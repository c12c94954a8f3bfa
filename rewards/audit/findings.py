"""What the audit says: findings with evidence and a remedy, and the report that gathers them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

Severity = Literal["error", "warning", "note"]
"""``error`` stops the run unless it is waived, ``warning`` is shown, ``note`` says what could not be looked at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """The place a finding is about; what does not apply stays empty."""

    term: str = ""
    agent: str = ""
    step: int | None = None
    """Steps of the episode before it."""
    episode: str = ""
    """The scenario's id; for a PettingZoo environment, the seed."""
    player: str = ""
    """Who played it."""

    def __str__(self) -> str:
        parts = [f"term {self.term}"] if self.term else []
        parts += [f"agent {self.agent}"] if self.agent else []
        parts += [f"step {self.step}"] if self.step is not None else []
        parts += [f"episode {self.episode}"] if self.episode else []
        parts += [f"played by {self.player}"] if self.player else []
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What a finding rests on: numbers, and the smallest example side by side."""

    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    saw: str = ""
    """What the agent saw, or what could be known."""
    used: str = ""
    """What the reward used, or what gave it away."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that is wrong, or worth knowing."""

    severity: Severity
    message: str
    remedy: str = ""
    where: Where = Where()
    evidence: Evidence = Evidence()
    check: str = ""
    """The check's name in the registry; ``audit`` fills it in."""


def error(message: str, remedy: str, where: Where = Where(), evidence: Evidence = Evidence()) -> Finding:
    """A finding that stops the run."""
    return Finding(severity="error", message=message, remedy=remedy, where=where, evidence=evidence)


def warning(message: str, remedy: str, where: Where = Where(), evidence: Evidence = Evidence()) -> Finding:
    """A finding that is shown and stops nothing."""
    return Finding(severity="warning", message=message, remedy=remedy, where=where, evidence=evidence)


def note(message: str, where: Where = Where(), evidence: Evidence = Evidence()) -> Finding:
    """Something worth knowing, such as what could not be looked at."""
    return Finding(severity="note", message=message, where=where, evidence=evidence)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """A check that was asked for."""

    promise: str
    """What holds when it finds nothing."""
    seconds: float
    """Wall time, s."""
    skipped: str = ""
    """Why it does not apply; empty where it was run."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that an audit found."""

    subject: str
    """The team or environment."""
    findings: tuple[Finding, ...]
    ran: Mapping[str, Ran]
    """Checks by name, in the order in which they were run."""
    waived: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reasons by check, or by ``check:term``: these errors are known and accepted."""

    def waiver(self, finding: Finding) -> str | None:
        """The reason why a finding is accepted, by its check or by its check and term; None where nobody gave one."""
        return self.waived.get(f"{finding.check}:{finding.where.term}", self.waived.get(finding.check))

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Errors that nobody waived."""
        return tuple(f for f in self.findings if f.severity == "error" and self.waiver(f) is None)

    @property
    def ok(self) -> bool:
        """Nothing stops the run."""
        return not self.errors

    @property
    def seconds(self) -> float:
        """Wall time of all checks, s."""
        return sum(r.seconds for r in self.ran.values())

    def of(self, check: str) -> tuple[Finding, ...]:
        """The findings of one check."""
        return tuple(f for f in self.findings if f.check == check)

    def state(self) -> dict[str, Any]:
        """The report as JSON, as ``audit.json`` keeps it."""
        return {
            "subject": self.subject,
            "ok": self.ok,
            "seconds": self.seconds,
            "findings": [asdict(f) | {"waived": self.waiver(f)} for f in self.findings],
            "waived": dict(self.waived),
            "ran": {name: asdict(r) for name, r in self.ran.items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The report that ``state`` was taken from."""
        return cls(
            subject=state["subject"],
            findings=tuple(_finding(f) for f in state["findings"]),
            ran={name: Ran(**r) for name, r in state["ran"].items()},
            waived=dict(state["waived"]),
        )


def _finding(state: Mapping[str, Any]) -> Finding:
    plain = {k: v for k, v in state.items() if k not in ("where", "evidence", "waived")}
    return Finding(**plain, where=Where(**state["where"]), evidence=Evidence(**state["evidence"]))
