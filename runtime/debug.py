"""Single steps: an agent in the foreground, stopped before each of its decisions.

    python -m runtime.run TEAM … --debug ROLE

At the prompt, ``seen`` is what the agent has before it, ``calls`` the calls it may make, and ``session`` everything;
``c`` goes on to the next decision, ``q`` ends the program.
"""

import pdb  # noqa: T100 - this is what the module is for
import sys
from collections.abc import Callable
from typing import Protocol

from runtime.errors import RepertoryError
from runtime.types import AgentId, Observation


class Seeing(Protocol):
    """A session, as far as it is looked at here."""

    def observe(self, agent: AgentId) -> Observation:
        """What the agent has before it."""
        ...


class NoTerminal(RepertoryError):
    """Somebody has to sit there to answer a breakpoint."""


def stop_before(role: AgentId) -> Callable[[Seeing, AgentId], None]:
    """What is to be called before each decision, and stops before those of one role.

    Raises:
        NoTerminal: nobody could answer; without a terminal the agent would wait for ever, or die at the first stop.
    """
    if not sys.stdin.isatty():
        raise NoTerminal(f"--debug {role} needs a terminal to ask at, and standard input is none")

    def before(session: Seeing, agent: AgentId) -> None:
        if agent == role:
            look(session, agent)

    return before


def look(session: Seeing, agent: AgentId) -> None:
    """Show what the agent sees, and stop."""
    seen = session.observe(agent)
    calls = [c for c, legal in zip(seen.candidates, seen.mask, strict=True) if legal]
    print(f"\n--- {agent}, decision {seen.turn}: {len(calls)} calls are open\n{seen.text}", flush=True)
    pdb.set_trace()  # noqa: T100 - not ``breakpoint``, which Ray turns into a debugger of its own
