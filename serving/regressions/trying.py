"""Regression cases tried on a version: each session replayed, and whether it went worse than it was recorded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assembly.cases import Case
from assembly.versions import Version
from serving.errors import NotNow
from serving.replay.replaying import NotReplayed, Replay, replayed


@dataclass(frozen=True, slots=True)
class Tried:
    """A case under a version."""

    case: Case
    replay: Replay | None
    """None: it could not be begun."""
    why_not: str = ""

    @property
    def worse(self) -> bool:
        """It was paid less than recorded, or no longer ended well. What is not known is not worse."""
        return self.replay is not None and self.case.worse(self.replay.paid, self.replay.success)

    @property
    def passed(self) -> bool:
        """It ended well, and no worse than recorded."""
        return self.replay is not None and self.replay.success is True and not self.worse

    @property
    def known(self) -> bool:
        """It came to an end, so that it can be said whether it went worse."""
        return self.replay is not None and not self.replay.stopped


def tried(version: Version, cases: Sequence[Case], *, greedy: bool = True) -> list[Tried]:
    """Each case under a version; those that it cannot begin, such as another team's, say why."""
    return [_tried(version, case, greedy=greedy) for case in cases]


def _tried(version: Version, case: Case, *, greedy: bool) -> Tried:
    try:
        return Tried(case, replayed(version, case.session, greedy=greedy))
    except NotReplayed as error:
        return Tried(case, None, str(error))


def demand(found: Sequence[Tried], alias: str) -> str:
    """What a promotion that asks for it is told: how many cases there were, and none worse.

    Raises:
        NotNow: cases went worse; which.
    """
    worse = [t.case.name for t in found if t.worse]
    if worse:
        raise NotNow("regressions", f"{alias} does worse on {len(worse)} of {len(found)} cases: {', '.join(worse)}")
    unknown = sum(not t.known for t in found)
    cases = f"{len(found)} regression case{'s' * (len(found) != 1)}"
    return f"{cases}, none worse" + (f", {unknown} not known" if unknown else "")


def lines_of(found: Sequence[Tried], name: str) -> Iterator[str]:
    """The cases under a version, for people to read."""
    passed, worse = sum(t.passed for t in found), sum(t.worse for t in found)
    unknown = sum(not t.known for t in found)
    yield f"{len(found)} cases under {name}: {passed} passed, {worse} worse than recorded, {unknown} not known"
    for each in found:
        word = "worse" if each.worse else "passed" if each.passed else "no better" if each.known else "unknown"
        yield f"  {word:<9} {each.case.name:<34} {_paid(each)}  {each.case.why}".rstrip()


def _paid(each: Tried) -> str:
    if each.replay is None:
        return each.why_not
    paid = each.replay.paid
    figures = "" if paid.before is None or paid.after is None else f"{paid.after:+.2f}, recorded {paid.before:+.2f}"
    return figures or each.replay.stopped
