"""A session that cannot go on: what its tools did outside is undone, and it ends, saying why."""

from assembly.live import OF_A_SESSION, recorded_case
from envs.restore import restored
from runtime.records import EpisodeEnded, Record
from runtime.seams import now
from runtime.store import history
from runtime.store.base import Store
from runtime.toolbox.undoing import compensate
from runtime.types import Team


def given_up(store: Store, team: Team, session: str, reason: str) -> bool:
    """End a session, its tools' effects undone, the last first, each on record; whether all of them could be.

    Called again after a crash, it goes on where it was.
    """

    def note(record: Record) -> None:
        store.write(lambda c: history.add(c, team.name, [(record, "")]))

    records = store.read(lambda c: history.of_session(c, team.name, session))
    own = [r for r in records if isinstance(r, OF_A_SESSION)]
    if not own or isinstance(own[-1], EpisodeEnded):
        return True
    world = restored(team, recorded_case(own), own).world
    complete = compensate(records, team.tools, world, note)
    outcome = {"given_up": reason, "undone": complete}
    note(EpisodeEnded(correlation_id=session, at=now(), outcome=outcome, success=False, truncated=True))
    return complete
