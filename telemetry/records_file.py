"""records/NNNNNN.jsonl: sampled episodes, one record a line, as they happened."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from runtime.records import RECORD, AnyRecord
from telemetry.durable import RecordLost, complete_lines, replace_file

KEPT = 200
"""Episodes kept a run: enough to see what a team does, small beside one checkpoint."""

HELD_OUT = 900
"""Of the thousand numbers of an iteration, those from here on are its held-out episodes."""


def number_of(iteration: int, held_out: int | None = None) -> int:
    """The number of an iteration's sampled episode; of its held-out episode in that place."""
    return iteration * 1000 + (0 if held_out is None else HELD_OUT + held_out)


def origin_of(number: int) -> str:
    """Where an episode of that number was played, for people to read."""
    iteration, place = divmod(number, 1000)
    return "held out" if place >= HELD_OUT else f"iteration {iteration:,}"


class RecordsDir:
    """Keeps the records of a run's latest sampled episodes.

    Raises:
        RecordLost: an episode cannot be written.
    """

    def __init__(self, path: Path, *, keep: int = KEPT) -> None:
        if keep < 1:
            raise ValueError(f"keep is {keep}; at least one episode is kept")
        self.path, self.keep = path, keep

    def write(self, episode: int, records: Sequence[AnyRecord]) -> Path:
        """Keep an episode under its number in the run: a resumed run writes the same ones over. The oldest goes."""
        path = self.path / f"{episode:06d}.jsonl"
        replace_file(path, "".join(f"{RECORD.dump_json(record).decode()}\n" for record in records))
        for old in episode_files(self.path)[: -self.keep]:
            old.unlink(missing_ok=True)
        return path


def episode_files(directory: Path) -> list[Path]:
    """A run's sampled episodes, oldest first."""
    return sorted((p for p in directory.glob("*.jsonl") if p.stem.isdecimal()), key=lambda p: int(p.stem))


def read_episode(path: Path) -> list[AnyRecord]:
    """An episode's records in their order. Raises RecordLost for a line that is not a record."""
    return [_record(path, number, line) for number, line in complete_lines(path)]


def _record(path: Path, number: int, line: str) -> AnyRecord:
    try:
        return RECORD.validate_json(line)
    except ValidationError as error:
        raise RecordLost(f"reading {path}, line {number}", str(error)) from error
