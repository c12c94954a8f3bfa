"""Garbage collection for a process that plays: what is made at start-up lives as long as it does."""

import gc
from functools import cache

YOUNG = 50_000
"""Objects made since the last look before the youngest are looked through; Python's own 700 makes it look 30 times a
second, through half a million objects of imported libraries now and then: half of all sampling time. Sessions and
records hold no cycles, so that counting references frees them."""


@cache
def settle() -> None:
    """Leave everything that exists now out of garbage collection, and look through what is new less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 100)
