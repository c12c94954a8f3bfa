"""The canary switch of the proxy: ``SET TEAM_ROLE_ratio 0.05`` in Redis, looked at again and again."""

import asyncio
import logging
from typing import Any

from redis.exceptions import RedisError

from runtime.access import share_of
from runtime.embedded import client_of
from runtime.errors import ServiceUnavailable
from runtime.proxy.ours import Ours
from runtime.proxy.settings import Serve

_log = logging.getLogger(__name__)
LOOK_S = 0.5
"""Pause between two looks (s): a share is to be seen within a second."""


def key_of(serve: Serve) -> str:
    """The operator's key, such as ``desk_triage_ratio``."""
    return f"{serve.model.partition('/')[0]}_{serve.role}_ratio"


class Switch:
    """Keeps the share that a trained version gets as an operator wants it. What is no share changes nothing.

    Args:
        serve: which version, and where the share stands.
        ours: whose share it is.
    """

    def __init__(self, serve: Serve, ours: Ours) -> None:
        self._serve, self._ours = serve, ours
        self._client: Any = None
        self._seen: str | None = ""

    async def keep_looking(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Take over the share that stands in Redis."""
        try:
            self._client = self._client or client_of(self._serve.redis)
            found: Any = self._client.get(key_of(self._serve))
        except (RedisError, OSError, ServiceUnavailable) as error:
            self._tell(None, f"Redis does not answer, the share stays {self._ours.share:g}: {type(error).__name__}")
            return
        raw = found.decode() if isinstance(found, bytes) else found or ""
        share = share_of(raw) if raw else self._serve.ratio
        if share is None:
            self._tell(
                raw, f"{key_of(self._serve)} is {raw!r}, which is no share from 0 to 1: it stays {self._ours.share:g}"
            )
            return
        if raw != self._seen:
            _log.warning("new conversations with %s: %s to %s", self._serve.role, f"{share:.1%}", self._serve.model)
        self._seen, self._ours.share = raw, share

    def _tell(self, seen: str | None, why: str) -> None:
        if seen != self._seen:
            _log.warning("%s", why)
        self._seen = seen
