"""Sessions that are over, read from a store: case, outcome, what was said of them, every record."""

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.engine import Connection

from runtime.records import RECORD, AnyRecord, Closed, EpisodeEnded, EpisodeOpened, Json, ModelCalled
from runtime.store import Store, feedback, history
from runtime.store.tables import HISTORY
from runtime.types import Scenario


class RecordedSession(Closed):
    """A team's run on a scenario, as it happened."""

    team: str
    session: str
    version: str
    """The hash of the version's content."""
    scenario: str
    """The scenario's id, as whoever opened the session gave it."""
    scenario_seed: int
    visible: Mapping[str, Json]
    truth: Mapping[str, Json]
    """Empty where it was not known."""
    opened: float
    """Unix time, s."""
    ended: float
    """Unix time, s."""
    success: bool
    truncated: bool
    degraded: bool
    """A fallback answered in it, in place of the version's own model."""
    reward: float | None
    """The first feedback on the whole session; None: nobody said anything."""
    records: tuple[str, ...]
    """Every record, in order, each as JSON (``runtime.records``)."""

    def case(self) -> Scenario:
        """The scenario."""
        return Scenario(id=self.scenario, visible=self.visible, truth=self.truth, seed=self.scenario_seed)

    def told(self) -> list[AnyRecord]:
        """The records."""
        return [RECORD.validate_json(each) for each in self.records]


def recorded_sessions(
    store: Store, team: str, since: float = float("-inf"), until: float = float("inf")
) -> Iterator[RecordedSession]:
    """A team's sessions that ended in a time, in the order in which they did; one is in memory at a time.

    Args:
        store: where they were recorded.
        team: whose they are.
        since: from this Unix time on (s).
        until: before this Unix time (s).
    """
    for session in store.read(lambda c: _ended(c, team, since, until)):
        found = store.read(lambda c, session=session: _session(c, team, session))
        if found is not None:
            yield found


def recorded_session(store: Store, team: str, session: str) -> RecordedSession | None:
    """One session; None: there is none of that id, it is not over, or its case was not recorded."""
    return store.read(lambda c: _session(c, team, session))


def _ended(connection: Connection, team: str, since: float, until: float) -> list[str]:
    c = HISTORY.c
    found = select(c.session, c.at).where(c.team == team, c.kind == "episode_ended").order_by(c.id)
    return list(dict.fromkeys(s for s, at in connection.execute(found) if since <= at < until))


def _session(connection: Connection, team: str, session: str) -> RecordedSession | None:
    records = history.of_session(connection, team, session)
    opened = next((r for r in records if isinstance(r, EpisodeOpened)), None)
    ended = next((r for r in records if isinstance(r, EpisodeEnded)), None)
    if opened is None or opened.case is None or ended is None:
        return None
    said = [f for f in feedback.of_session(connection, team, session) if f.decision_id is None]
    return RecordedSession(
        team=team,
        session=session,
        version=opened.version,
        scenario=opened.scenario,
        scenario_seed=opened.case.get("seed", 0),
        visible=opened.case.get("visible", {}),
        truth=opened.case.get("truth", {}),
        opened=opened.at,
        ended=ended.at,
        success=ended.success,
        truncated=ended.truncated,
        degraded=_degraded(records),
        reward=said[0].value if said else None,
        records=tuple(r.model_dump_json() for r in records),
    )


def _degraded(records: Sequence[AnyRecord]) -> bool:
    return any(isinstance(r, ModelCalled) and r.degraded for r in records)
