"""What a check is: a plain function from the audit's material to findings."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from rewards.audit.findings import Finding
from rewards.audit.material import Material

CheckFunction = Callable[[Material], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """A check of the registry."""

    function: CheckFunction
    promise: str
    """What holds when it finds nothing, in one sentence."""
    needs: tuple[str, ...] = ()
    """What the material must have (``Material.has``), else the check does not apply; ``a|b``: either."""
    when: Literal["before", "during"] = "before"
    """Before training, or on episodes sampled from it."""
