"""Sessions as the live runtime records them, written straight into a store."""

from collections.abc import Sequence

from runtime.records import (
    Decided,
    EpisodeEnded,
    EpisodeOpened,
    Fault,
    ModelCalled,
    Observed,
    Record,
    Rewarded,
    ToolAnswered,
    ToolCall,
)
from runtime.store import Store, history, pins

TEAM = "desk"


def records(
    session: str,
    *,
    at: float = 0.0,
    fault: Fault | None = None,
    degraded: bool = False,
    paid: Sequence[tuple[str, float | None]] = (),
    given_up: bool = False,
    took_s: float = 0.5,
) -> list[Record]:
    """A session of one decision that asks one tool."""
    turn = {"correlation_id": session, "agent": "clerk", "turn": 0}
    call = ToolCall(tool="look_up", args={})
    made: list[Record] = [
        EpisodeOpened(
            correlation_id=session, at=at, team=TEAM, scenario=f"case-{session}", seed=0, version="v1",
            case={"visible": {"asked": session}, "truth": {"answer": 1}, "seed": 7},
        ),
        Observed(**turn, at=at, text="?", candidates=(call,), mask=(True,)),
        *([ModelCalled(**turn, at=at, tokens_in=1, tokens_out=1, ms=1.0, degraded=True)] if degraded else []),
        Decided(**turn, at=at, call=call),
        ToolAnswered(**turn, at=at + took_s, tool="look_up", ok=fault is None, fault=fault),
        *(Rewarded(**turn, at=at + took_s, term=term, value=value) for term, value in paid),
    ]  # fmt: skip
    outcome = {"given_up": "five failures"} if given_up else {"said": 1}
    made.append(EpisodeEnded(correlation_id=session, at=at + took_s, outcome=outcome, success=not given_up))
    return made


def played(store: Store, version: str, made: Sequence[Record]) -> str:
    """Write a session's records and its pin; its id."""
    session = made[0].correlation_id
    store.write(
        lambda c: (pins.pin(c, TEAM, session, version, made[0].at), history.add(c, TEAM, [(r, "") for r in made]))
    )
    return session
