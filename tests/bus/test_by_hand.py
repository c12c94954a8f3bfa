"""Events that a person adds with redis-cli, dead letters and the log from the shell, several teams, shards, names."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.bus import BusSettings, EventBus
from runtime.bus.__main__ import main
from runtime.bus.event import Event, decode
from runtime.bus.names import Names
from runtime.embedded import EmbeddedRedis
from runtime.errors import TeamError
from tests.bus.conftest import QUICK, MakeBus
from tests.bus.helpers import noted, said, writes_down
from tests.conftest import WaitUntil

LOG, STREAM = "agent_events", "agent_events:shop:ear"


def test_an_event_added_to_the_complete_log_is_routed(bus: EventBus, redis: Any, wait_until: WaitUntil) -> None:
    """``XADD agent_events * from A to ear payload test``: ids are assigned, what is no JSON is text; it comes once."""
    seen: list[Event] = []
    bus.consumer("role", "ear", "ear-0", lambda d: seen.append(d.event)).start()
    redis.xadd(LOG, {"from": "A", "to": "ear", "payload": "test"})
    redis.xadd(LOG, {"to": "shop:ear", "payload": '{"n": 1}', "correlation_id": "mine"})
    wait_until(lambda: len(seen) == 2, "both events")
    assert [(e.sender, e.payload) for e in seen] == [("A", "test"), ("operator", {"n": 1})]
    assert seen[0].event_id.startswith("hand-")
    assert seen[0].correlation_id == seen[0].event_id
    assert seen[1].correlation_id == "mine"
    logged = [f for _, f in redis.xrange(LOG) if f.get(b"stream") == STREAM.encode()]
    assert [f[b"payload"] for f in logged] == [b'"test"', b'{"n":1}']


def test_an_event_added_to_a_role_s_stream_is_handled(bus: EventBus, redis: Any, wait_until: WaitUntil) -> None:
    """Without a single id."""
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    redis.xadd(STREAM, {"payload": "direct", "correlation_id": "s1"})
    wait_until(lambda: noted(bus) == ["direct"], "the event")


@pytest.mark.parametrize(
    ("stream", "fields", "reason"),
    [
        (LOG, {"to": "nose", "payload": "x"}, "there is no role 'nose' (shop: ear, voice, caller)"),
        (LOG, {"payload": "x"}, "there is no field to: which role is it for?"),
        (LOG, {"to": "ear", "body": "x"}, "no payload field"),
        (LOG, {"to": "ear", "team": "bank", "payload": "x"}, "there is no role 'ear' in team 'bank' (no such team)"),
        (STREAM, {"to": "voice", "payload": "x"}, "it is for 'voice', and was found on the stream of 'ear'"),
        (STREAM, {"text": "x"}, "no payload field"),
        (STREAM, {"payload": b"\xff\xfe"}, "not UTF-8"),
        (STREAM, {"payload": "x", "seq": "first"}, "seq, attempt, contract or timestamp is not a number"),
        (STREAM, {"payload": "x", "seq": "7"}, "out of order: number 7 of its line came, number 1 is missing"),
    ],
)
def test_what_cannot_be_delivered_is_a_dead_letter_with_the_reason(
    bus: EventBus, redis: Any, wait_until: WaitUntil, stream: str, fields: dict[str, Any], reason: str
) -> None:
    """Whatever a person types: nothing is lost in silence, and the stream goes on."""
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    redis.xadd(stream, fields)
    wait_until(bus.dead_letters, "the dead letter")
    (letter,) = bus.dead_letters()
    assert letter.reason.startswith(reason)
    wait_until(lambda: redis.xlen("agent_events:shop:dead") == 1, "its entry on the stream of dead letters")
    entry = redis.xrange("agent_events:shop:dead")[0][1]
    assert entry[b"reason"].decode() == letter.reason
    bus.publish(said("goes on"))
    wait_until(lambda: noted(bus) == ["goes on"], "the next event")


def test_two_teams_share_a_redis(make_bus: MakeBus, redis: Any, wait_until: WaitUntil, tmp_path: Path) -> None:
    """Each has its streams; an event by hand finds the team whose role it is, and says so where both have one."""
    shop = make_bus()
    bank = make_bus(store=f"sqlite:///{tmp_path}/bank.db", team="bank", roles=("ear", "clerk"))
    for each in (shop, bank):
        each.start()
        each.consumer("role", "ear", "ear-0", writes_down).start()
    bank.consumer("role", "clerk", "clerk-0", writes_down).start()
    wait_until(lambda: redis.hlen("agent_events:teams") == 2, "both teams")
    redis.xadd(LOG, {"to": "clerk", "payload": "1", "correlation_id": "s1"})
    redis.xadd(LOG, {"to": "ear", "payload": "2", "correlation_id": "s1", "team": "shop"})
    redis.xadd(LOG, {"to": "ear", "payload": "3", "correlation_id": "s1"})
    wait_until(lambda: (noted(bank), noted(shop)) == (["1"], ["2"]), "one event each")
    wait_until(lambda: shop.dead_letters() + bank.dead_letters(), "the one for both")
    assert [x.reason for x in bank.dead_letters()] == [
        "teams bank, shop all have a role 'ear': add a field team, or write TEAM:ear"
    ]
    assert shop.dead_letters() == []


def test_dead_letters_from_the_shell(
    bus: EventBus,
    server: EmbeddedRedis,
    redis: Any,
    wait_until: WaitUntil,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``list`` shows them, ``replay`` gives them back, ``log`` shows a session's whole chain."""
    ill = [True]

    def handle(delivery: Any) -> None:
        if ill:
            raise ValueError("ill")
        writes_down(delivery)

    bus.consumer("role", "ear", "ear-0", handle).start()
    event = bus.publish(said("pill"))
    wait_until(bus.dead_letters, "the dead letter")
    where = ["--redis", server.reference, "--store", f"sqlite:///{bus.store.engine.url.database}"]
    assert main(["list", "shop", *where]) == 0
    assert f"{event.event_id}  " in (out := capsys.readouterr().out)
    assert "caller -> ear  group role, 5 tries: ValueError: ill" in out
    ill.clear()
    assert main(["replay", "shop", "all", *where]) == 0
    wait_until(lambda: noted(bus) == ["pill"], "the replay")
    assert main(["replay", "shop", "unknown", *where]) == 1
    assert main(["list", "bank", *where]) == 1
    capsys.readouterr()
    assert main(["log", "s1", *where[:2]]) == 0
    assert [line.split(" ", 1)[1] for line in capsys.readouterr().out.splitlines()] == ['caller -> ear "pill"'] * 2
    assert main(["log", "s1", "--redis", "redis://127.0.0.1:1"]) == 3


def test_help_is_there() -> None:
    """``python -m runtime.bus --help`` names the four commands."""
    said_ = subprocess.run(
        [sys.executable, "-m", "runtime.bus", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert all(word in said_ for word in ("list", "replay", "stats", "log"))


def test_shards_keep_sessions_together_and_scripts_in_one_slot(
    make_bus: MakeBus, redis: Any, wait_until: WaitUntil
) -> None:
    """With several streams a role, a session always goes to the same one; every key of a script has its hash tag."""
    from dataclasses import replace

    from runtime.bus import Reading

    bus = make_bus(settings=replace(QUICK, shards=3))
    bus.start()
    for k in range(3):
        bus.consumer("role", "ear", f"ear-{k}", writes_down, Reading(shard=k)).start()
    for n in range(5):
        bus.publish_all([said(n, session=f"s{i}") for i in range(12)])
    for i in range(12):
        wait_until(lambda i=i: noted(bus, f"s{i}") == ["0", "1", "2", "3", "4"], "a session")
    names = Names("shop", ("ear",), 3)
    used = [names.stream("ear", f"s{i}") for i in range(12)]
    assert set(used) == set(names.streams("ear"))
    for stream in names.streams("ear"):
        slots = {redis.execute_command("CLUSTER", "KEYSLOT", k) for k in (stream, names.dead_of(stream))}
        assert len(slots) == 1


@pytest.mark.parametrize("bad", ["", "a:b", "a b", "{a}", "dead"])
def test_a_name_that_would_confuse_streams_is_refused(bad: str) -> None:
    """Keys are put together from names, and must come apart again."""
    with pytest.raises(TeamError, match="cannot name a team or role"):
        Names("shop", (bad,))
    with pytest.raises(TeamError, match="at least one stream"):
        Names("shop", ("ear",), 0)


def test_an_event_reads_as_it_was_written() -> None:
    """Fields of the contract, in text; what is empty is left out."""
    event = Event(
        to="ear", payload={"a": [1, None, "ü"]}, sender="x", correlation_id="c", event_id="e", seq=3, timestamp=1.5
    )
    fields = event.fields()
    assert [*fields] == ["event_id", "correlation_id", "from", "to", "payload", "seq", "attempt", "timestamp"]
    assert decode("1-1", {k.encode(): v.encode() for k, v in fields.items()}) == event
    with pytest.raises(ValueError, match="not JSON compliant"):
        Event(to="ear", payload=float("nan")).fields()


def test_a_bus_that_cannot_reach_redis_says_so(tmp_path: Path) -> None:
    """At once, with the remedy."""
    from runtime.errors import ServiceUnavailable

    with pytest.raises(ServiceUnavailable, match="does not answer"):
        EventBus(
            "redis://127.0.0.1:1", f"sqlite:///{tmp_path}/s.db", team="shop", roles=("ear",), settings=BusSettings()
        )
