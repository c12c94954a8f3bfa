"""Replies that were given before, on disk: a frozen model that is asked the same again is neither asked nor paid again.

A reply is kept under the hash of all that it depends on: who was asked, what, and with which sampling. Files appear
whole or not at all, so that any number of processes may share a directory; what cannot be read is as if it were not
there, and is replaced. The least recently used go when there are too many.
"""

import json
import logging
import os
import uuid
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from runtime.records import Closed, Json

VARIABLE = "REPERTORY_REPLIES"
"""The environment variable with the directory, or ``off``. It reaches every process that a command starts."""
OFF = "off"
MOST_BYTES = 512 * 2**20
"""What the files of a directory may take together: some hundred thousand replies."""
LEFT = 0.9
"""The share of it that is left when there was too much, so that not every reply looks through all."""
OFTEN = 16
"""A process looks through the directory after it has added this part of what there may be."""

_log = logging.getLogger(__name__)


class Reply(Closed):
    """What a model said, and what that took when it said it."""

    text: str
    reason: str = "stop"
    provider: str = ""
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    """US dollars; None where no price is known."""


class Replies:
    """A directory of replies.

    Args:
        directory: where; made when it is needed.
        most_bytes: what its files may take together.
    """

    def __init__(self, directory: Path, most_bytes: int = MOST_BYTES) -> None:
        self.directory, self._most = directory, most_bytes
        self._added = most_bytes
        """Bytes since this process last looked through the directory; at first it has not."""
        self._told = False

    def find(self, question: Mapping[str, Json]) -> Reply | None:
        """The reply to a question; None: there is none."""
        file = self._file(question)
        try:
            kept = json.loads(file.read_bytes())
            reply = Reply.model_validate(kept["reply"])
            if kept["sum"] != _sum(reply):
                return None
            os.utime(file)
        except (OSError, ValueError, KeyError, TypeError, ValidationError, RecursionError):
            return None
        return reply

    def keep(self, question: Mapping[str, Json], reply: Reply) -> None:
        """Keep a reply. A disk that is full or not there is said once, and costs nothing but the reply."""
        told = {"sum": _sum(reply), "reply": reply.model_dump(mode="json"), "question": dict(question)}
        text = json.dumps(told, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
        try:
            self._write(self._file(question), text)
            self._bound(len(text))
        except OSError as error:
            if not self._told:
                _log.warning("replies are not kept in %s: %s", self.directory, error)
            self._told = True

    def _file(self, question: Mapping[str, Json]) -> Path:
        text = json.dumps(question, sort_keys=True, default=str).encode()
        return self.directory / f"{blake2b(text, digest_size=20).hexdigest()}.json"

    def _write(self, file: Path, text: bytes) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
        try:
            part.write_bytes(text)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)

    def _bound(self, added: int) -> None:
        """Remove what was not used for longest, where there is too much."""
        self._added += added
        if self._added * OFTEN < self._most:
            return
        self._added = 0
        found = sorted(_sizes(self.directory))
        total = sum(size for _, size, _ in found)
        if total <= self._most:
            return
        for _, size, path in found:
            Path(path).unlink(missing_ok=True)
            total -= size
            if total <= LEFT * self._most:
                return


def usual() -> Path:
    """Where replies are kept unless somebody names another place."""
    return Path("~/.cache/repertory/replies").expanduser()


def switch(on: bool) -> None:
    """Have this process, and those that it starts, keep replies or ask anew. A place that is set already stays."""
    if not on:
        os.environ[VARIABLE] = OFF
    else:
        os.environ.setdefault(VARIABLE, str(usual()))


def switched_off() -> bool:
    """Whether everybody is to be asked anew."""
    return os.environ.get(VARIABLE) == OFF


def kept() -> Replies | None:
    """The replies of this process; None where nothing was switched on, or it was switched off."""
    place = os.environ.get(VARIABLE, "")
    return Replies(Path(place)) if place and place != OFF else None


def _sum(reply: Reply) -> str:
    return blake2b(json.dumps(reply.model_dump(mode="json")).encode(), digest_size=8).hexdigest()


def _sizes(directory: Path) -> list[tuple[float, int, str]]:
    """When each file was last used, how large it is, and which it is."""
    found: list[tuple[float, int, str]] = []
    with os.scandir(directory) as files:
        for file in files:
            try:
                about: Any = file.stat()
            except OSError:
                continue  # another process has just removed it
            found.append((about.st_mtime, about.st_size, file.path))
    return found
