"""What commands that listen and steer share: what only this machine reaches, tokens by reference, shares as written."""

import os
from collections.abc import Mapping
from pathlib import Path

from runtime.errors import ServiceUnavailable

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Hosts that only this machine reaches."""
SHORTEST = 16
"""Characters of a token: less can be guessed."""


def token_at(
    reference: str, remedy: str = "set it, or correct the reference", environment: Mapping[str, str] = os.environ
) -> str:
    """The token that ``env:NAME`` or ``file:PATH`` refers to.

    Raises:
        ServiceUnavailable: there is none, or one that is too short to be a secret.
    """
    kind, _, where = reference.partition(":")
    if kind not in ("env", "file"):
        raise ServiceUnavailable("token", "is given as it is", "write env:NAME or file:PATH: all can see arguments")
    try:
        token = environment[where] if kind == "env" else Path(where).read_text(encoding="utf-8").strip()
    except (KeyError, OSError):
        raise ServiceUnavailable(reference, "holds no token", remedy) from None
    if len(token) < SHORTEST:
        raise ServiceUnavailable(reference, f"holds fewer than {SHORTEST} characters", "use a longer token")
    return token


def share_of(text: str) -> float | None:
    """A share as operators write it (``0.05`` or ``5%``); None: it is none in [0, 1]."""
    written = text.strip()
    try:
        value = float(written[:-1]) / 100 if written.endswith("%") else float(written)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
