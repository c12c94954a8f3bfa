"""A thousand sessions at once, on real actors: all of them end, and nothing of one is found in another."""

import re
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest

from assembly.stage_live import Place, Stage, agent_specs
from assembly.versions import load_version
from runtime.actor import hosting
from tests.live.versions import fresh_version

SESSIONS = 1_000
CANARY = re.compile(r"canary-\d{5}-x")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_thousand_sessions_at_once_do_not_mix(tmp_path: Path, ray_local: None) -> None:
    """Each has a marker in what its agents see: it is in all of its observations and in no other session's records."""
    directory = tmp_path / "version"
    fresh_version(directory)
    version, place = load_version(directory), Place.under(tmp_path / "live")
    generate, markers = version.team.generate, dict[str, str]()
    assert generate is not None
    with Stage(place, version) as stage:
        for k in range(SESSIONS):
            marker, case = f"canary-{k:05d}-x", generate("eval", 2, k)
            markers[stage.open(replace(case, visible={**case.visible, "marker": marker}))] = marker
        with hosting(list(agent_specs(place, directory, version).values())):  # all are open before an agent is there
            began = time.monotonic()
            ended = list(stage.run([], silence_s=60))
            print(f"{SESSIONS} sessions, all open at once, ended after {time.monotonic() - began:.1f} s of play")
        assert stage.dead == 0
    assert sorted(e.session for e in ended) == sorted(markers)
    found: dict[str, set[str]] = {}
    with sqlite3.connect(tmp_path / "live" / "store.db") as store:
        for session, kind, body in store.execute("SELECT session, kind, body FROM history ORDER BY id"):
            if session in markers:
                seen = set(CANARY.findall(body))
                assert seen or kind != "observed", "every observation shows the case"
                assert f'"correlation_id":"{session}"' in body
                found.setdefault(session, set()).update(seen)
    assert found == {session: {marker} for session, marker in markers.items()}
