"""A real PostgreSQL for tests, and nothing left of it afterwards."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
"""Where Debian puts PostgreSQL."""


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a cluster that lives as long as the tests, on a free port of 127.0.0.1."""
    if not PROGRAMS:
        pytest.skip("no PostgreSQL server here: apt install postgresql")
    # Not below pytest's own directories: only their owner may enter those, and root's server runs as another user.
    directory = Path(tempfile.mkdtemp(prefix="pg-"))
    other: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": ()} if os.getuid() == 0 else {}
    if other:  # the server refuses to run as root
        shutil.chown(directory, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = [PROGRAMS[0] / "initdb", "-D", directory / "data", "-U", "tests", "-A", "trust", "--no-sync"]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=directory, **other)
    run = [PROGRAMS[0] / "postgres", "-D", directory / "data", "-p", str(port), "-k", directory, "-h", "127.0.0.1"]
    server = subprocess.Popen(run, stderr=subprocess.DEVNULL, cwd=directory, **other)
    try:
        yield f"postgresql://tests@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)
        shutil.rmtree(directory)


@pytest.fixture
def empty_postgres(postgres: str, wait_until: Callable[..., None]) -> str:
    """The cluster's URL, with nothing in its database."""
    engine = create_engine(postgres.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")

    def emptied() -> bool:
        try:
            with engine.connect() as connection:
                connection.execute(text("DROP SCHEMA public CASCADE"))
                connection.execute(text("CREATE SCHEMA public"))
        except OperationalError:  # it is just starting
            return False
        return True

    wait_until(emptied, "PostgreSQL")
    engine.dispose()
    return postgres
