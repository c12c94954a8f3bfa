"""Who asks: bearer tokens, compared in constant time and never logged, and session ids that are bound to them."""

import hmac
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.engine import Connection

from runtime.store import Store
from runtime.store.marks import ADD
from runtime.store.tables import MARKS
from serving.errors import NoSuchSession, Unauthorized

SECRET = "serving-secret"
"""The mark under which the store keeps what session ids are signed with."""
RANDOM_HEX, SIGNED_HEX = 32, 32
"""Hexadecimal digits of a session id: chance (128 bits), then the signature that binds it to a team and a token."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever showed a token."""

    name: str
    admin: bool
    digest: str = field(repr=False)
    """A hash of the token."""


class Access:
    """Knows the tokens, and which sessions belong to whom.

    Args:
        tokens: by name, the token itself.
        admins: who may steer versions.
        secret: what session ids are signed with, the same in every router.
    """

    def __init__(self, tokens: Mapping[str, str], admins: Sequence[str], secret: str) -> None:
        self._callers = [Caller(name, name in admins, _digest(token)) for name, token in tokens.items()]
        self._secret = secret.encode()

    def caller(self, header: str | None, *, admin: bool = False) -> Caller:
        """Who sent this ``Authorization`` header.

        Raises:
            Unauthorized: nobody known did, or one who may not steer versions, where that is asked for.
        """
        scheme, _, token = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthorized("no_token", "send `Authorization: Bearer TOKEN`")
        shown = _digest(token.strip())
        found = [c for c in self._callers if hmac.compare_digest(c.digest, shown)]  # all of them: the time says nothing
        if not found:
            raise Unauthorized("wrong_token", "this token is not known here")
        if admin and not found[0].admin:
            raise Forbidden("not_admin", f"{found[0].name} may not steer versions")
        return found[0]

    def session(self, caller: Caller, team: str, key: str = "") -> str:
        """A new session's id; with a key, the same one for the same caller, team and key."""
        chance = self._sign("key", team, caller.digest, key)[:RANDOM_HEX] if key else secrets.token_hex(RANDOM_HEX // 2)
        return chance + self._sign("session", team, caller.digest, chance)[:SIGNED_HEX]

    def check(self, caller: Caller, team: str, session: str) -> None:
        """See that a session's id was given to this caller. Raises NoSuchSession: to others, it does not exist."""
        chance, signed = session[:RANDOM_HEX], session[RANDOM_HEX:]
        right = self._sign("session", team, caller.digest, chance)[:SIGNED_HEX]
        if not hmac.compare_digest(signed.encode(), right.encode()):
            raise NoSuchSession

    def _sign(self, *parts: str) -> str:
        return hmac.new(self._secret, "\x1f".join(parts).encode(), sha256).hexdigest()


class Forbidden(Unauthorized):
    """The token is known, and may not do this."""

    status = 403


def make_token(file: Path) -> None:
    """Have a token in a file that only its owner can read, unless there is one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        opened = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return
    with os.fdopen(opened, "w") as out:
        out.write(secrets.token_urlsafe(32))


def shared_secret(store: Store) -> str:
    """What session ids are signed with, made when it is first asked for; the same for all who share the store."""

    def made(connection: Connection) -> str:
        connection.execute(ADD, {"name": SECRET, "value": secrets.token_hex(32)})
        return connection.execute(select(MARKS.c.value).where(MARKS.c.name == SECRET)).scalar_one()

    return store.write(made)


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
