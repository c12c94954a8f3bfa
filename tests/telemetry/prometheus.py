"""A real Prometheus on a free port, for tests that ask it."""

import json
import socket
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen


@dataclass(frozen=True)
class Prometheus:
    at: str

    def series(self, query: str) -> list[dict[str, Any]]:
        """What a query gives: label sets with values; nothing while the server is not up."""
        try:
            with urlopen(f"http://{self.at}/api/v1/query?{urlencode({'query': query})}", timeout=5) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []

    def over_time(self, query: str, start: float, end: float, step_s: float = 1.0) -> list[dict[str, Any]]:
        """What a query gave between two moments (Unix time, s): label sets with ``values``, pairs of time and text."""
        asked = urlencode({"query": query, "start": start, "end": end, "step": step_s})
        with urlopen(f"http://{self.at}/api/v1/query_range?{asked}", timeout=30) as answer:
            return json.load(answer)["data"]["result"]

    def value(self, query: str) -> float | None:
        found = self.series(query)
        return float(found[0]["value"][1]) if found else None


@contextmanager
def prometheus(place: Path, targets: Sequence[Path], interval: str = "1s") -> Generator[Prometheus]:
    """A server that reads those directories of ``file_sd`` files, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        at = f"127.0.0.1:{free.getsockname()[1]}"
    files = ", ".join(f"'{t}/*.json'" for t in targets)
    place.mkdir(parents=True, exist_ok=True)
    config = place / "prometheus.yml"
    config.write_text(
        f"scrape_configs:\n- job_name: r\n  scrape_interval: {interval}\n"
        f"  file_sd_configs: [{{files: [{files}], refresh_interval: 1s}}]\n"
    )
    server = subprocess.Popen(
        ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={place}/data", f"--web.listen-address={at}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Prometheus(at)
    finally:
        server.terminate()
        server.wait()
