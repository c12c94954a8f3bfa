"""Who may write: each new owner gets the next epoch, and whoever holds an older one is fenced."""

from dataclasses import dataclass

from sqlalchemy import select, text
from sqlalchemy.engine import Connection

from runtime.errors import Fenced
from runtime.store.tables import OWNERS

CLAIM = text(
    "INSERT INTO owners (owner, epoch, at) VALUES (:owner, 1, :at) "
    "ON CONFLICT (owner) DO UPDATE SET epoch = owners.epoch + 1, at = excluded.at RETURNING epoch"
)


@dataclass(frozen=True, slots=True)
class Owner:
    """The right to write for something, such as a role of a team, until somebody else claims it."""

    owner: str
    epoch: int


def claim(connection: Connection, owner: str, at: float) -> Owner:
    """Become the owner; whoever was it before can write no more."""
    return Owner(owner, connection.execute(CLAIM, {"owner": owner, "at": at}).scalar_one())


def check(connection: Connection, held: Owner) -> None:
    """See that the epoch is the newest, and keep it so until the transaction ends.

    Raises:
        Fenced: somebody else has become the owner.
    """
    newest = select(OWNERS.c.epoch).where(OWNERS.c.owner == held.owner).with_for_update(read=True)
    current = connection.execute(newest).scalar() or 0
    if current != held.epoch:
        raise Fenced(held.owner, held.epoch, current)
