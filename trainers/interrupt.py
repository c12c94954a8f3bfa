"""Ctrl-C and SIGTERM: what they mean before training and while it lasts."""

import signal
import sys
from types import FrameType

from runtime.signals import SIGNALS


class Interrupt:
    """Before there is anything to save, the first signal stops at once; afterwards the second one does."""

    def __init__(self) -> None:
        self.asked = False
        self._patient = False
        self._arm()

    def _arm(self) -> None:
        for each in SIGNALS:
            signal.signal(each, self._ask)

    def wait_for_checkpoint(self) -> None:
        """From now on there is something to save: the first signal is answered after the iteration it meets."""
        self._patient = True
        self._arm()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked or not self._patient:
            self.asked = True
            signal.signal(signal.SIGINT, signal.default_int_handler)
            raise KeyboardInterrupt
        self.asked = True
        print("\nstopping as soon as a checkpoint is saved (again: stop at once)", file=sys.stderr)

    def __call__(self) -> bool:
        """Whether the user wants to stop. Libraries that have taken the signals since the last question lose them."""
        if not self.asked:
            self._arm()
        return self.asked
