"""Where the bundled server keeps its things, and the reference by which others find it."""

import os
import secrets
import tempfile
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from runtime.errors import ServiceUnavailable

SCHEME = "embedded:"
"""``embedded:DIRECTORY`` names a bundled server: no address and no password, so it may be passed on and logged."""
SOCKET_LIMIT = 100
"""Bytes that a path of a unix socket may have: the system's limit is 107, and Valkey wants a few."""


@dataclass(frozen=True, slots=True)
class Places:
    """The files of one bundled server."""

    directory: Path

    @classmethod
    def of(cls, directory: Path | str) -> "Places":
        """Those of a directory, which is made if it is missing."""
        found = Path(directory).expanduser().absolute()
        found.mkdir(parents=True, exist_ok=True, mode=0o700)
        return cls(found.resolve())

    @property
    def reference(self) -> str:
        """The reference that other processes connect by."""
        return f"{SCHEME}{self.directory}"

    @property
    def lock(self) -> Path:
        """Held by the supervisor as long as it lives."""
        return self.directory / "redis.lock"

    @property
    def pid(self) -> Path:
        """The server writes its process id there."""
        return self.directory / "redis.pid"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.directory / "redis.log"

    @property
    def socket(self) -> Path:
        """Where the server listens: in the directory, or if that path is too long, in a short one of the user's own."""
        usual = self.directory / "redis.sock"
        return usual if len(os.fsencode(usual)) <= SOCKET_LIMIT else _short(self.directory)

    def password(self) -> str:
        """The server's password, made at the first call; only the user can read its file."""
        file = self.directory / "redis.password"
        made = file.with_name(f".password-{secrets.token_hex(8)}")
        if not file.exists():
            with os.fdopen(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as out:
                out.write(secrets.token_urlsafe(24))
            try:
                os.link(made, file)
            except FileExistsError:
                pass  # another process was faster, and its password holds
            finally:
                made.unlink()
        return file.read_text(encoding="utf-8")


def _short(directory: Path) -> Path:
    """A socket's path that depends on nothing but the directory's, in a folder that nobody else can enter."""
    folder = Path(tempfile.gettempdir()) / f"repertory-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ServiceUnavailable(
            str(directory), f"{folder} is open to others", "remove it, or set TMPDIR to a short path"
        )
    socket = folder / f"{blake2b(os.fsencode(directory), digest_size=8).hexdigest()}.sock"
    if len(os.fsencode(socket)) > SOCKET_LIMIT:
        raise ServiceUnavailable(
            str(directory), f"{socket} is too long for a unix socket", "set TMPDIR to a short path"
        )
    return socket
