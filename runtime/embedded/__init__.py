"""The bundled Valkey: a Redis of the run's own, without installing one.

with serve("runs/now/redis") as redis:      # one supervisor a directory; others stand by
    client = connect(redis.reference)       # embedded:DIRECTORY; any process of this user may connect
"""

from pathlib import Path

from runtime.embedded.client import client_of, connect, shown
from runtime.embedded.places import SCHEME, Places
from runtime.embedded.server import EmbeddedRedis

__all__ = ["SCHEME", "EmbeddedRedis", "Places", "client_of", "connect", "serve", "shown"]


def serve(directory: Path | str) -> EmbeddedRedis:
    """Have the directory's bundled server running, as its supervisor or standing by, until it is closed.

    Raises:
        ServiceUnavailable: it cannot be started, with what it said.
    """
    return EmbeddedRedis(directory)
