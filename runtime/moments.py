"""Moments as people write them: ``2026-05-01`` or ``2026-05-01T12:00:00+02:00``; without a zone, UTC."""

from datetime import UTC, datetime


def unix_time(text: str) -> float:
    """The Unix time (s) of a moment in ISO 8601. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def as_text(at: float) -> str:
    """A Unix time (s) in ISO 8601, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat()
