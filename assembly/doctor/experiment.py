"""What an experiment file declares, service by service."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

from assembly.doctor import machine, services
from assembly.doctor.examining import Checkup, Seen
from assembly.document import Document
from assembly.experiment import Experiment
from assembly.lm_rules import TINY
from assembly.lm_sections import CausalLM, Prompted
from assembly.problems import Path as Key
from runtime.embedded.client import shown
from runtime.errors import ServiceUnavailable

POSTGRES = "postgresql://"


def declared_by(experiment: Experiment, document: Document, out: Path = Path("runs")) -> list[Checkup]:
    """Everything that must be there for the experiment to run; ``out`` is where its run directory goes."""
    return [
        *_redis(experiment, document),
        *_sessions(experiment, document),
        *_cluster(experiment, document),
        *_telemetry(experiment, document),
        *(c for name in experiment.policies for c in _policy(experiment, document, name)),
        *_judges(experiment, document),
        *_machine(experiment, document, out),
    ]


def where(document: Document, key: Key) -> str:
    """File, line and key of a setting, or that it is the default."""
    dotted = ".".join(map(str, key))
    place = next((document.places[key[:i]] for i in range(len(key), 0, -1) if key[:i] in document.places), None)
    if place is None:
        return f"{document.file.name}: {dotted} (the default)"
    return f"{place}" if isinstance(place, str) else f"{document.file.name}, line {place}: {dotted}"


def _redis(x: Experiment, document: Document) -> Iterator[Checkup]:
    if x.redis != "embedded":
        yield Checkup(
            name="redis",
            declared=shown(x.redis),
            where=where(document, ("redis",)),
            probe=partial(services.referenced, services.redis, x.redis),
            remedy="start it, correct `redis:`, or use `redis: embedded`",
        )


def _sessions(x: Experiment, document: Document) -> Iterator[Checkup]:
    """A database of recorded sessions; a file of them is part of what is accepted or refused."""
    store = x.scenarios.store
    if store is not None and store.startswith(POSTGRES):
        yield Checkup(
            name="recorded sessions",
            declared=shown(store),
            where=where(document, ("scenarios", "store")),
            probe=partial(services.postgres, store),
            remedy="start it, or correct scenarios.store",
        )


def _cluster(x: Experiment, document: Document) -> Iterator[Checkup]:
    if address := x.resources.ray_address:
        yield Checkup(
            name="ray",
            declared=address,
            where=where(document, ("resources", "ray_address")),
            probe=partial(machine.ray_cluster, address),
            remedy=machine.RAY_REMEDY,
            within_s=machine.RAY_S,
        )


def _telemetry(x: Experiment, document: Document) -> Iterator[Checkup]:
    if x.telemetry.otlp:
        yield Checkup(
            name="otlp",
            declared=x.telemetry.otlp,
            where=where(document, ("telemetry", "otlp")),
            probe=partial(services.otlp, x.telemetry.otlp),
            remedy="start the collector, or leave telemetry.otlp out",
        )
    if x.telemetry.port:
        yield Checkup(
            name="metrics port",
            declared=str(x.telemetry.port),
            where=where(document, ("telemetry", "port")),
            probe=partial(_or_the_next, x.telemetry.port),
        )
    if board := x.resources.dashboard:
        yield Checkup(
            name="ray dashboard",
            declared=f"{board.host}:{board.port}",
            where=where(document, ("resources", "dashboard")),
            probe=partial(services.port_free, board.host, board.port),
        )


def _or_the_next(port: int) -> Seen:
    try:
        return services.port_free("127.0.0.1", port)
    except ServiceUnavailable as error:
        return Seen(what=f"{error.seen}: the next free one will be taken, and said")


def _policy(x: Experiment, document: Document, name: str) -> Iterator[Checkup]:
    policy: Any = x.policies[name]
    key: Key = ("policies", name, "model")
    if isinstance(policy, Prompted) and policy.base_url:
        yield Checkup(
            name=f"endpoint of {name}",
            declared=f"{policy.model} at {policy.base_url}",
            where=where(document, ("policies", name, "base_url")),
            probe=partial(services.endpoint, policy.base_url, policy.model, policy.key_variable),
            remedy="start it, or correct base_url",
        )
    elif isinstance(policy, Prompted | CausalLM) and policy.model != TINY:
        yield Checkup(
            name=f"model of {name}",
            declared=policy.model,
            where=where(document, key),
            probe=partial(machine.model, policy.model, document.file.resolve().parent),
        )


def _judges(x: Experiment, document: Document) -> Iterator[Checkup]:
    """Terms that a language model judges."""
    for place, term in enumerate(x.rewards.terms):
        at, model = term.args.get("endpoint"), term.args.get("model")
        if isinstance(at, dict) and isinstance(model, str) and "base_url" in at:
            known = cast("dict[str, Any]", at)
            yield Checkup(
                name=f"judge of {term.use}",
                declared=f"{model} at {known['base_url']}",
                where=where(document, ("rewards", "terms", place, "args", "endpoint", "base_url")),
                probe=partial(
                    services.endpoint, str(known["base_url"]), model, str(known.get("key_env", "OPENAI_API_KEY"))
                ),
                remedy="start it, or correct base_url",
            )


def _machine(x: Experiment, document: Document, out: Path) -> Iterator[Checkup]:
    wanted = x.resources.gpus
    if isinstance(wanted, int) and wanted > 0 and not x.resources.ray_address:
        yield Checkup(
            name="gpus",
            declared=str(wanted),
            where=where(document, ("resources", "gpus")),
            probe=partial(machine.gpus, wanted),
            remedy="see whether nvidia-smi answers",
            within_s=machine.GPU_S,
        )
    processes = x.resources.env_runners + x.resources.learners
    yield Checkup(name="disk", declared=str(out), where="--out", probe=partial(machine.disk, out))
    yield Checkup(
        name="memory",
        declared=f"{processes + 1} processes",
        where=where(document, ("resources", "env_runners")),
        probe=partial(machine.memory, processes),
    )
    yield Checkup(name="open files", declared="ulimit -n", where="this shell", probe=machine.open_files)
