"""Where the outside gets in: the clock, sleeping and chance, each a plain function that a test can replace."""

import time
from collections.abc import Callable
from hashlib import blake2b

Clock = Callable[[], float]
"""Unix time, s."""

now: Clock = time.time
sleep: Callable[[float], None] = time.sleep


def digest(*parts: object) -> int:
    """A 64-bit hash of the parts that is the same in every process (Python's own ``hash`` is not)."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def uniform(*key: object) -> float:
    """A number in [0, 1) that depends on nothing but the key, such as (seed, scenario, agent, turn).

    A decision drawn with it is the same whoever draws it, in whatever order: this is what makes training, evaluation,
    the live runtime and serving decide alike.
    """
    return (digest(*key) >> 11) * 2.0**-53
