"""An agent's life: what may follow what, and that nothing changes without a record."""

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.lifecycle import CHANGES, Change, Lifecycle
from runtime.records import StateChanged


def test_a_day() -> None:
    """Idle, at work, waiting, at work again, in error, and back: each change is a record with its time."""
    noted: list[StateChanged] = []
    times = iter(range(100))
    life = Lifecycle("clerk", "s", noted.append, clock=lambda: next(times))
    for change in ("work", "wait", "work", "rest", "work", "fail", "recover"):
        assert life.go(change)
    assert [(r.before, r.after) for r in noted] == [
        ("idle", "running"),
        ("running", "waiting"),
        ("waiting", "running"),
        ("running", "idle"),
        ("idle", "running"),
        ("running", "error"),
        ("error", "idle"),
    ]
    assert [r.at for r in noted] == list(range(7))
    assert {(r.agent, r.correlation_id, r.refused) for r in noted} == {("clerk", "s", "")}


@settings(deadline=None)
@given(st.lists(st.sampled_from(sorted(CHANGES))))
def test_an_illegal_change_is_refused_and_recorded(asked: list[Change]) -> None:
    """Whatever is asked, only what the table allows happens; the rest is recorded as refused and changes nothing."""
    noted: list[StateChanged] = []
    life = Lifecycle("clerk", "s", noted.append, clock=lambda: 0.0)
    for change in asked:
        before = life.state
        legal = before in CHANGES[change][0]
        assert life.go(change) is legal
        assert life.state == (CHANGES[change][1] if legal else before)
        assert bool(noted[-1].refused) is not legal
    assert len(noted) == len(asked)


def test_a_refusal_says_why() -> None:
    """A refused change names what was asked, what it needs, and how things are."""
    noted: list[StateChanged] = []
    Lifecycle("clerk", "s", noted.append).go("rest")
    assert noted[0].refused == "rest is for an agent that is running, not idle"
