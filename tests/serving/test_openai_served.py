"""The same promises on a real Ray Serve, and what only it can break."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from serving.server.conductor import statuses
from serving.server.seat import app_name
from serving.server.start import serving
from tests.conftest import WaitUntil
from tests.serving.conftest import UP_S, answers, ready, settings_at
from tests.serving.house import House
from tests.serving.openai_team import SHOP
from tests.serving.swapping import processes
from tests.serving.test_openai import (
    HELLO,
    TOKENS,
    client,
    test_a_role_decides_as_at_its_export,
    test_a_stream_says_what_the_whole_answer_says,
    test_errors_have_the_shape_that_clients_know,
    versions,
)

__all__ = [
    "client",
    "test_a_role_decides_as_at_its_export",
    "test_a_stream_says_what_the_whole_answer_says",
    "test_errors_have_the_shape_that_clients_know",
    "versions",
]
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory,
    versions: tuple[Path, Path],
    wait_until: WaitUntil,
) -> Iterator[House]:
    directory = tmp_path_factory.mktemp("shop")
    os.environ.update({f"{name.upper()}_TOKEN": token for name, token in TOKENS.items()})
    tokens = {name: f"env:{name.upper()}_TOKEN" for name in TOKENS}
    teams = {SHOP: {"registry": str(directory / "registry"), "current": "v1"}}
    with serving(settings_at(directory, teams=teams, http={"port": 0, "tokens": tokens})) as running:
        for export in versions:
            alias = running.versions.register(SHOP, export, by="test", why="")
            running.versions.deploy(SHOP, alias, by="test", why="")
        wait_until(lambda: ready(running, SHOP), "both versions to be ready", UP_S)
        wait_until(lambda: answers(running), "the router to be ready", UP_S)
        yield House(running.url, running.versions, lambda: None)


def test_a_chat_meets_a_killed_replica(server: House, client: openai.OpenAI, wait_until: WaitUntil) -> None:
    """It is asked again on the same version, as nothing had been said yet."""
    for pid in processes(f"ServeReplica:{app_name(SHOP, 'v1')}:"):
        os.kill(pid, signal.SIGKILL)
    said = client.chat.completions.create(model=f"{SHOP}/clerk@v1", messages=HELLO, max_tokens=3)
    assert said.usage is not None
    assert said.usage.completion_tokens == 3
    wait_until(lambda: statuses()[app_name(SHOP, "v1")] == "RUNNING", "the replica to be back", UP_S)
