"""Nothing lost, nothing twice: whatever is killed, the ledger has every event once for every group."""

from pathlib import Path

import pytest

from tests.bus.chaos import Plan, Play


def test_a_thousand_events_survive_two_kills(tmp_path: Path) -> None:
    """kill -9 of processes in the middle of their work; the checker reads only the ledger."""
    plan = Plan(directory=str(tmp_path), events=1_000, kills=2, pause_s=(0.3, 0.8), pace_s=0.05, limit_s=90.0)
    verdict = Play(plan).run()
    assert sum(verdict.kills.values()) == 2
    assert verdict.clean, verdict


@pytest.mark.slow
@pytest.mark.timeout(360)
def test_20_000_events_survive_kills_every_few_seconds(tmp_path: Path) -> None:
    """Publisher with its relay, upkeep, readers of three groups and Redis killed, Redis emptied: done within 5 min."""
    verdict = Play(Plan(directory=str(tmp_path), events=20_000)).run()
    assert verdict.clean, verdict
    assert verdict.seconds <= 300


@pytest.mark.slow
@pytest.mark.parametrize("dedupe", [True, False])
def test_without_dedupe_the_same_play_has_effects_twice(tmp_path: Path, dedupe: bool) -> None:
    """Redis is emptied again and again: the checker can tell, and the inbox is needed."""
    plan = Plan(
        directory=str(tmp_path), events=2_000, victims=("flushall",), kills=10, pause_s=(0.2, 0.6), dedupe=dedupe
    )
    verdict = Play(plan).run()
    assert verdict.kills["flushall"] > 0
    assert verdict.clean is dedupe, verdict
    assert bool(verdict.twice) is not dedupe


@pytest.mark.slow
def test_cut_by_length_the_same_play_loses_events(tmp_path: Path) -> None:
    """Who is slower than the stream is long loses: MINID over all groups is needed."""
    plan = Plan(directory=str(tmp_path), events=2_000, safe_trim=False, kills=3, limit_s=20.0)
    assert Play(plan).run().lost
