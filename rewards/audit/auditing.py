"""Run checks on material and report."""

import importlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from rewards.audit.check import Check
from rewards.audit.findings import Evidence, Finding, Ran, Report, error
from rewards.audit.judging import line_of
from rewards.audit.material import Material
from rewards.audit.registry import CHECKS


class UnknownCheck(ValueError):
    """A name that is no check's: which, and what was probably meant."""


def audit(
    material: Material,
    only: Iterable[str] | None = None,
    waive: Mapping[str, str] | None = None,
    own: Sequence[str] = (),
    when: str = "before",
) -> Report:
    """Run the checks that apply.

    Args:
        material: the team or environment.
        only: names of checks, in place of all that are due.
        waive: reasons by check, or by ``check:term``: these errors do not stop the run. They are reported all the same.
        own: further checks, each ``module:check``.
        when: ``before`` training, or ``during``.

    Raises:
        UnknownCheck: a name is not a check's.
    """
    known = {**CHECKS, **{name: own_check(name) for name in own}}
    asked = [n for n, c in known.items() if c.when == when] if only is None else list(only)
    for name in (*asked, *(w if w in known else w.rpartition(":")[0] or w for w in waive or {})):
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise UnknownCheck(
                f"there is no check {name!r}{f'; did you mean {near[0]}?' if near else ''} ({', '.join(known)})"
            )
    findings: list[Finding] = []
    ran: dict[str, Ran] = {}
    for name in asked:
        start = time.perf_counter()
        skipped = _inapplicable(known[name], material)
        if not skipped:
            findings += [replace(f, check=name) for f in _found(known[name], material)]
        ran[name] = Ran(promise=known[name].promise, seconds=time.perf_counter() - start, skipped=skipped)
    return Report(subject=material.name, findings=tuple(findings), ran=ran, waived=dict(waive or {}))


def _inapplicable(check: Check, material: Material) -> str:
    for need in check.needs:
        if not any(material.has(n) for n in need.split("|")):
            return f"needs {need.replace('|', ' or ')}"
    return ""


def _found(check: Check, material: Material) -> list[Finding]:
    """The findings; what a check raises is one too, since nothing that was not looked at may pass for clean."""
    found: list[Finding] = []
    try:
        found.extend(_findings(check.function(material)))
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the team's code, or a user's own check
        evidence = Evidence(used=line_of(fault))
        message = f"could not be finished: {type(fault).__name__}: {fault}"
        found.append(error(message, "correct what raised, at the line named", evidence=evidence))
    return found


def _findings(said: Any) -> Iterator[Finding]:
    """What a check said, one by one. Raises TypeError for anything but findings, such as a text."""
    for finding in said if isinstance(said, Iterable) and not isinstance(said, str) else [said]:
        if not isinstance(finding, Finding):
            raise TypeError(
                f"a check returns or yields findings, and this one said {str(finding)[:80]!r}; "
                "make one with rewards.audit.findings.error(message, remedy), or warning or note"
            )
        yield finding


def own_check(reference: str) -> Check:
    """A check that a user wrote: ``module:name`` is a function from material to findings, or a ``Check``.

    Raises:
        UnknownCheck: there is no such function.
    """
    module, _, name = reference.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as fault:
        raise UnknownCheck(f"own check {reference!r} is not there: {fault}; write module:function") from fault
    if isinstance(found, Check):
        return found
    if not callable(found):
        raise UnknownCheck(f"own check {reference!r} is no function")
    function: Callable[..., Any] = found
    return Check(function, (function.__doc__ or "").strip().partition("\n")[0])
