"""How a bus behaves: leases, limits, ages. Every figure has its unit and its reason."""

from dataclasses import dataclass, field

from runtime.seams import Clock, now


@dataclass(frozen=True, kw_only=True, slots=True)
class Safety:
    """What keeps events from being lost or applied twice. Only tests switch a part off, to see that it is needed."""

    dedupe: bool = True
    """An event that a group has had before is skipped."""
    fencing: bool = True
    """Only the current owner's epoch may write."""
    safe_trim: bool = True
    """Streams are cut below what every group has confirmed; else at a length, forgetting what they no longer hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BusSettings:
    """All that can be set about a bus; the defaults suit a team of language-model agents."""

    shards: int = 1
    """Streams a role. With more than one, a session always goes to the same one, and names carry cluster hash tags."""
    lease_s: float = 15.0
    """How long an event that was read belongs to its reader without a heartbeat (s); a heartbeat is a fifth of it."""
    max_attempts: int = 5
    """Tries before an event becomes a dead letter."""
    retry_s: float = 0.1
    """Pause after the first failed try (s); it doubles with each, up to 5 s."""
    batch: int = 64
    """Events read at once: 64 cost a thirtieth of the client's time that one by one costs."""
    flush_s: float = 0.005
    """A commit is due when handlers have run this long (s): slow ones commit one by one, fast ones together."""
    depth_limit: int = 10_000
    """Events waiting in any stream of the team above which publishers wait."""
    block_s: float = 5.0
    """How long a publisher waits for room (s) before it is refused."""
    park_s: float = 60.0
    """How long an event waits for the one before it in its session (s) before it becomes a dead letter."""
    keep_s: float = 0.5
    """Pause between two rounds of upkeep (s): stragglers, due events, trimming."""
    straggler_s: float = 5.0
    """An event still unsent this long after its commit (s) lost its sender, and anyone may send it."""
    verify_s: float = 30.0
    """An event unconfirmed this long after it was sent (s) is looked for in Redis, and sent again if it is gone."""
    log_s: float = 86_400.0
    """How long the complete log keeps events (s)."""
    inbox_s: float = 3_600.0
    """How long it is remembered that a confirmed event was had (s); longer than any sender can be asleep."""
    session_s: float = 604_800.0
    """How long the order of a silent session is remembered (s)."""
    trim_length: int = 100
    """Only without safe trimming: the length at which a stream is cut."""
    now: Clock = now
    """The clock (Unix time, s)."""
    safety: Safety = field(default_factory=Safety)
