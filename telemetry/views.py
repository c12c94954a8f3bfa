"""Views after: what only shows may break; it says so once and the run carries on without it."""

import logging
from collections.abc import Callable

LOG = logging.getLogger(__name__)


class View:
    """Runs what shows something, until it fails for the first time."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.broken = False

    def __call__(self, show: Callable[[], object]) -> None:
        """Show, unless an earlier try has failed."""
        if self.broken:
            return
        try:
            show()
        except Exception:
            self.broken = True
            LOG.exception("%s broke and is switched off; the run carries on without it", self.what)
