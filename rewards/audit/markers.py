"""Texts that can be recognized in disguise: verbatim, normalized, reversed, encoded, hashed."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

SHORTEST = 4
"""Characters a text needs to be looked for in disguise: shorter ones turn up by chance."""
_HASHES = ("md5", "sha1", "sha224", "sha256", "sha512", "blake2b", "blake2s")
_HASH_PREFIX = 8
"""Hex digits of a hash that are taken for the hash: fewer turn up by chance."""
_REVERSIBLE = 6
"""Letters and digits a text needs to be looked for backwards: shorter ones are parts of other words."""
_RUNS = re.compile(r"[A-Za-z0-9+/_=-]{6,}")


def top(path: str) -> str:
    """The first key of a path."""
    return re.split(r"[.\[]", path.lstrip("."), maxsplit=1)[0]


def normalized(text: str) -> str:
    """Letters and digits only, in lower case."""
    return re.sub(r"[\W_]+", "", text).lower()


def found_in(marker: str, text: str) -> str:
    """How the text holds the marker: ``verbatim``, ``normalized`` or as ``disguised`` says; empty if it does not."""
    if marker in text:
        return "verbatim"
    plain = normalized(marker)
    if len(plain) >= SHORTEST and plain in normalized(text):
        return "normalized"
    return disguised(marker, text)


def disguised(marker: str, text: str, salts: tuple[str, ...] = ()) -> str:
    """``reversed``, ``hex``, ``base64``, ``base32`` or a hash's name, if the text holds the marker so; else empty.

    Args:
        marker: what is looked for, itself in no disguise.
        text: where.
        salts: texts that may have been hashed along with it, such as the case's id.
    """
    low, wanted = text.lower(), marker.lower()
    found = next((name for needle, name in _needles(marker, salts) if needle in low), "")
    if found or len(marker) < SHORTEST:
        return found
    return next((name for name, plain in _decoded(text) if wanted in plain), "")


@lru_cache(maxsize=20_000)
def _needles(marker: str, salts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Disguises that can be written down beforehand, in lower case, with their names."""
    salted = [f"{a}{joint}{b}" for s in salts for a, b in ((marker, s), (s, marker)) for joint in ("", ":", "-", "|")]
    spellings = dict.fromkeys((marker, marker.lower(), marker.strip(), *salted))
    found = [(hashlib.new(h, s.encode()).hexdigest()[:_HASH_PREFIX], h) for s in spellings for h in _HASHES]
    if len(marker) >= SHORTEST:
        found.append((marker.encode().hex(), "hex"))
    back = marker[::-1].lower()
    if len(normalized(marker)) >= _REVERSIBLE and back != marker.lower():
        found.append((back, "reversed"))
    return tuple(found)


@lru_cache(maxsize=20_000)
def _decoded(text: str) -> tuple[tuple[str, str], ...]:
    """What looks encoded, decoded and in lower case: so salt around a marker hides nothing."""
    found: list[tuple[str, str]] = []
    for run in dict.fromkeys(_RUNS.findall(text)):
        for name, decode in _DECODERS.items():
            plain = decode(run).lower()
            if plain:
                found.append((name, plain))
    return tuple(found)


def _base64(run: str) -> str:
    cleaned = run.rstrip("=").replace("-", "+").replace("_", "/")
    return _tried(lambda: base64.b64decode(cleaned + "=" * (-len(cleaned) % 4)))


def _base32(run: str) -> str:
    cleaned = run.rstrip("=").upper()
    return _tried(lambda: base64.b32decode(cleaned + "=" * (-len(cleaned) % 8)))


def _hex(run: str) -> str:
    return _tried(lambda: bytes.fromhex(run))


def _tried(decode: Callable[[], bytes]) -> str:
    try:
        return decode().decode("utf-8", "replace")
    except ValueError:
        return ""


_DECODERS: Mapping[str, Callable[[str], str]] = {"base64": _base64, "base32": _base32, "hex": _hex}
