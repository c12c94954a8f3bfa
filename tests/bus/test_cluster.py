"""With shards, every command stays within one slot: a server in cluster mode refuses any that does not."""

import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import RedisError, ResponseError

from runtime.bus import EventBus, Reading
from runtime.embedded import client_of
from runtime.embedded.server import _binary
from tests.bus.conftest import QUICK
from tests.bus.helpers import noted, said, writes_down
from tests.conftest import WaitUntil


@pytest.fixture
def cluster(tmp_path: Path, wait_until: WaitUntil) -> Iterator[str]:
    """One node that has all slots, and the rules of many, on 127.0.0.1."""
    with socket.socket() as free, socket.socket() as other:
        for each in (free, other):
            each.bind(("127.0.0.1", 0))
        port, gossip = free.getsockname()[1], other.getsockname()[1]
    ports = ["--port", str(port), "--cluster-port", str(gossip), "--bind", "127.0.0.1"]
    node = subprocess.Popen(
        [_binary(), *ports, "--cluster-enabled", "yes", "--save", "", "--dir", str(tmp_path)], stdout=subprocess.DEVNULL
    )
    url = f"redis://127.0.0.1:{port}/0"
    client: Any = client_of(url)

    def up() -> bool:
        try:
            if "ok" in str(client.execute_command("CLUSTER", "INFO")).partition("cluster_slots_assigned")[0]:
                return True
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        except RedisError:  # it is just starting, or has its slots already
            return False
        return False

    try:
        wait_until(up, "a cluster")
        yield url
    finally:
        client.close()
        node.kill()
        node.wait()


def test_shards_work_where_no_command_may_cross_slots(cluster: str, tmp_path: Path, wait_until: WaitUntil) -> None:
    """Publishing, reading, failing, burying, replaying, trimming, by hand, statistics."""
    settings = replace(QUICK, shards=3, max_attempts=2)
    bus = EventBus(cluster, f"sqlite:///{tmp_path}/s.db", team="shop", roles=("ear", "voice"), settings=settings)
    bus.start()
    ill = [True]

    def handle(delivery: Any) -> None:
        if ill and delivery.session == "s1":
            raise ValueError("ill")
        writes_down(delivery)

    for k in range(3):
        bus.consumer("role", "ear", f"ear-{k}", handle, Reading(shard=k)).start()
    for i in range(8):
        bus.publish_all([said(n, session=f"s{i}") for n in range(3)])
    wait_until(lambda: all(noted(bus, f"s{i}") == ["0", "1", "2"] for i in range(8) if i != 1), "seven sessions")
    wait_until(lambda: len(bus.dead_letters()) == 3, "the dead letters of the eighth")
    ill.clear()
    for letter in bus.dead_letters():
        bus.replay(letter.event_id)
    client: Any = client_of(cluster)
    client.xadd("agent_events", {"to": "ear", "payload": "by hand", "correlation_id": "s1"})
    wait_until(lambda: sorted(noted(bus, "s1")) == ["0", "1", "2", "by hand"], "the eighth session")
    wait_until(lambda: sum(bus.stats()["length"].values()) <= 3, "short streams")
    with pytest.raises(ResponseError, match="same slot"):
        client.eval("return 0", 2, "one", "another")
    bus.stop()
    client.close()
