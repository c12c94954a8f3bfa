"""Ray started on this machine, also where the machine is busy."""

import logging
from typing import Any

from runtime.errors import ServiceUnavailable
from runtime.signals import handlers_kept

TRIES = 5
"""How often Ray may start: it gives its own processes 30 s, which a machine that is busy may not keep."""
QUIET: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
LOCAL: dict[str, Any] = {"address": "local", "include_dashboard": False, **QUIET}
"""Arguments of ``ray.init`` for a Ray of one's own: without an address it would join whatever cluster runs here."""


def start_ray(**arguments: Any) -> None:
    """``ray.init``, tried again where Ray's own processes were too slow for it; signals are answered as before.

    Raises:
        ServiceUnavailable: it does not start.
        ConnectionError: no cluster answers at the address.
    """
    import ray as untyped

    ray: Any = untyped
    for left in reversed(range(TRIES)):
        try:
            with handlers_kept():
                ray.init(**arguments)
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
            if not left:
                seen = f"did not start in {TRIES} tries"
                raise ServiceUnavailable("ray", seen, "is this machine busy with something else?") from error
        else:
            return
