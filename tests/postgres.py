"""A real PostgreSQL for tests, and nothing left of it afterwards."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
"""Where Debian puts PostgreSQL."""


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a cluster that lives as long as the tests, on a free port of 127.0.0.1."""
    if not PROGRAMS:
        pytest.skip("no PostgreSQL server here: apt install postgresql")
    directory = tmp_path_factory.mktemp("postgres")
    user = "postgres" if os.getuid() == 0 else None  # the server refuses to run as root
    if user:
        for path in (directory, *directory.parents[:3]):
            path.chmod(0o755)
        shutil.chown(directory, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = directory / "data"
    subprocess.run(
        [PROGRAMS[0] / "initdb", "-D", data, "-U", "tests", "-A", "trust", "--no-sync"],
        user=user, check=True, capture_output=True, cwd=directory,
    )  # fmt: skip
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(
            [PROGRAMS[0] / "postgres", "-D", data, "-p", str(port), "-k", directory, "-h", "127.0.0.1"],
            user=user, stderr=log, cwd=directory,
        )  # fmt: skip
    try:
        yield f"postgresql://tests@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


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
