"""Ctrl-C and SIGTERM: whose handlers stand."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What asks a process to stop: a terminal, and whoever supervises processes."""


@contextmanager
def handlers_kept() -> Generator[None]:
    """Whatever a library does to the handlers of these signals inside, those from before stand afterwards.

    Ray installs one for SIGTERM in C++, below Python's, which aborts the process; setting Python's again takes it off.
    """
    before = {each: signal.getsignal(each) for each in SIGNALS}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for each, handler in before.items():
                with suppress(TypeError):  # a handler that was not set from Python cannot be set from it
                    signal.signal(each, handler)
