"""Sessions of the first of two versions, recorded in a store beside a registry and a serving file that name both."""

import dataclasses
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import yaml

from assembly.versions import Version, load_version
from runtime.recorded import RecordedSession, recorded_session
from runtime.store import Store, pins, snapshots
from serving.pins import STATE
from serving.playing import Player, first_state
from serving.registry import Objects
from serving.replay.replaying import Replay, replayed
from serving.tables import open_serving_store
from serving.versions import Versions
from tests.serving.conftest import TEAM

CASES = 12


@dataclasses.dataclass(frozen=True)
class Recorded:
    """Twelve sessions that the first of two versions played."""

    store: Store
    versions: Versions
    folder: Path
    file: Path
    first: Version
    second: Version

    def session(self, name: str) -> RecordedSession:
        found = recorded_session(self.store, TEAM, name)
        assert found
        return found

    def sessions(self) -> list[RecordedSession]:
        return [self.session(f"s{index}") for index in range(CASES)]

    def parted(self) -> tuple[RecordedSession, Replay]:
        """A session in which the two versions part."""
        for recorded in self.sessions():
            replay = replayed(self.second, recorded)
            if replay.parting:
                return recorded, replay
        raise AssertionError("the two versions decide alike in all cases")


@contextmanager
def recorded(folder: Path, exports: tuple[Path, Path]) -> Generator[Recorded]:
    """The sessions, with both versions registered as v1 and v2."""
    store = open_serving_store(f"sqlite:///{folder / 'store.db'}")
    versions = Versions(store, {TEAM: Objects(str(folder / "registry"))}, no_redis)
    for export in exports:
        versions.register(TEAM, export, by="test", why="")
    file = folder / "serving.yaml"
    file.write_text(
        yaml.safe_dump({"teams": {TEAM: {"registry": "registry"}}, "store": f"sqlite:///{folder}/store.db"})
    )
    first, second = map(load_version, exports)
    for index in range(CASES):
        play(store, first, f"s{index}", index)
    yield Recorded(store, versions, folder, file, first, second)
    store.close()


def no_redis() -> object:
    raise OSError("no Redis is needed here")


def play(store: Store, version: Version, name: str, index: int) -> None:
    """A whole session, as a server plays it."""

    def opened(connection: object) -> None:
        pins.pin(connection, TEAM, name, "v1", 1.0)
        state = first_state({"draw": {"split": "eval", "seed": 2, "index": index}})
        snapshots.save(connection, [snapshots.Saving(team=TEAM, role=STATE, session=name, state=state)], 1.0)

    store.write(opened)
    player, turn = Player(version, "v1", store), 0
    while True:
        answer = player.turn(name, f"t{turn}")
        assert answer["status"] == "ok", answer
        turn += 1
        if answer.get("turn", {})["ended"]:
            return
