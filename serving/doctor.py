"""What a serving file declares, service by service."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from assembly.doctor import Checkup, machine, services
from assembly.doctor.examining import Seen
from assembly.doctor.experiment import where
from assembly.document import Document
from runtime.embedded.client import shown
from serving.settings import Serving


def declared_by(settings: Serving, document: Document) -> list[Checkup]:
    """Everything that must be there for the file to be served."""
    return [
        *_redis(settings, document),
        *_store(settings, document),
        *_http(settings, document),
        *_tokens(settings, document),
        *_registries(settings, document),
        *_machine(settings, document),
    ]


def _redis(x: Serving, document: Document) -> Iterator[Checkup]:
    if x.redis != "embedded":
        yield Checkup(
            name="redis",
            declared=shown(x.redis),
            where=where(document, ("redis",)),
            probe=partial(services.referenced, services.redis, x.redis),
            remedy="start it, correct `redis:`, or use `redis: embedded`",
        )


def _store(x: Serving, document: Document) -> Iterator[Checkup]:
    yield Checkup(
        name="store",
        declared=shown(x.store_at),
        where=where(document, ("store",)),
        probe=partial(services.referenced, _store_at, x.store_at),
        remedy="correct `store:`",
    )


def _store_at(url: str) -> Seen:
    if url.startswith("sqlite:///"):
        return services.sqlite(Path(url.removeprefix("sqlite:///")))
    return services.postgres(url)


def _http(x: Serving, document: Document) -> Iterator[Checkup]:
    if x.http.port:
        yield Checkup(
            name="http port",
            declared=f"{x.http.host}:{x.http.port}",
            where=where(document, ("http", "port")),
            probe=partial(services.port_free, x.http.host, x.http.port),
        )
    if x.ray_address:
        yield Checkup(
            name="ray",
            declared=x.ray_address,
            where=where(document, ("ray_address",)),
            probe=partial(machine.ray_cluster, x.ray_address),
            remedy="start one with `ray start --head`, or leave the key out to use this machine",
            within_s=machine.RAY_S,
        )


def _tokens(x: Serving, document: Document) -> Iterator[Checkup]:
    for name, reference in x.http.tokens.items():
        yield Checkup(
            name=f"token {name}",
            declared=reference,
            where=where(document, ("http", "tokens", name)),
            probe=partial(_token, reference),
        )


def _token(reference: str) -> Seen:
    from runtime.access import token_at

    token_at(reference)
    return Seen(what="there")


def _registries(x: Serving, document: Document) -> Iterator[Checkup]:
    for name, team in x.teams.items():
        yield Checkup(
            name=f"registry of {name}",
            declared=team.registry,
            where=where(document, ("teams", name, "registry")),
            probe=partial(_registry, team.registry),
            remedy="correct the address, or the credentials of its store",
        )


def _registry(address: str) -> Seen:
    import fsspec

    system, path = fsspec.core.url_to_fs(address)
    if not system.exists(path):
        return Seen(what="is empty", state="warning", remedy="python -m serving.versions deploy TEAM RUN_DIR/version")
    return Seen(what=f"{len(system.ls(path, detail=False))} entries")


def _machine(x: Serving, document: Document) -> Iterator[Checkup]:
    yield Checkup(
        name="disk",
        declared=str(x.place),
        where=where(document, ("directory",)),
        probe=partial(machine.disk, x.place),
    )
    processes = x.routers + sum(t.replicas for t in x.teams.values())
    yield Checkup(
        name="memory",
        declared=f"{processes + 1} processes",
        where=where(document, ("teams",)),
        probe=partial(machine.memory, processes),
    )
    yield Checkup(name="open files", declared="ulimit -n", where="this shell", probe=machine.open_files)
