"""``python -m runtime.proxy --upstream URL``: record what a program's agents ask and do, and pass everything on.

A thin command: it reads its roles file as every file of the project is read (``assembly``).
"""

import argparse
import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import ValidationError

from assembly.document import read_document
from assembly.problems import Problem, Refused, in_order, show
from assembly.refusals import findings
from runtime.access import LOOPBACK, share_of, token_at
from runtime.actor.spec import reference
from runtime.errors import ServiceUnavailable
from runtime.exits import DONE, ended
from runtime.proxy.settings import Bounds, Roles, Serve, Settings, provider_of

STORE = Path("proxy") / "store.db"
"""Where records go unless another place is named."""
GRACE_S = 10
"""How long open answers may take to end when the proxy is told to stop (s)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(argv)
    return ended(lambda: _serve(_settings(asked)), Refused)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m runtime.proxy",
        description="An OpenAI-compatible endpoint before another one, which records what goes through.",
    )
    parser.add_argument("--upstream", required=True, metavar="URL", help="whose answers go through: https://HOST/v1")
    parser.add_argument("--store", metavar="URL", help=f"sqlite:///… or postgresql://… ({STORE})")
    parser.add_argument("--host", default="127.0.0.1", help="others than this machine's own need --token (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8010, metavar="N", help="0 takes a free one (8010)")
    parser.add_argument("--token", metavar="REF", help="env:NAME or file:PATH of what callers show in x-proxy-token")
    parser.add_argument("--roles", type=Path, metavar="FILE", help="how roles are known, as YAML; see docs/proxy.md")
    parser.add_argument(
        "--idle", type=float, default=Bounds().idle_s, metavar="S", help="a conversation ends so (%(default)g)"
    )
    parser.add_argument("--open", type=int, default=Bounds().open, metavar="N", help="requests at once (%(default)d)")
    served = parser.add_argument_group("a trained version in the place of the upstream, for one role")
    served.add_argument("--serve", metavar="URL", help="the server of versions: http://HOST:PORT/v1")
    served.add_argument("--role", metavar="ROLE", help="the role that it plays")
    served.add_argument("--version", default="", metavar="VERSION", help="v1 and so on (what a new session gets)")
    served.add_argument("--ratio", default="0", metavar="SHARE", help="of new conversations: 10%% or 0.1 (0)")
    served.add_argument("--serve-token", metavar="REF", help="env:NAME or file:PATH of that server's token")
    served.add_argument("--redis", metavar="URL", help="where TEAM_ROLE_ratio changes the share while it runs")
    return parser


def _settings(asked: argparse.Namespace) -> Settings:
    """What was asked for. Raises Refused with all that is wrong with it, ServiceUnavailable for a token."""
    if wrong := [*_wrong(asked)]:
        raise Refused("the command", [Problem(key, message) for key, message in wrong])
    roles = _roles(asked.roles) if asked.roles else Roles()
    return Settings(
        upstream=asked.upstream,
        store=asked.store or f"sqlite:///{STORE.resolve()}",
        host=asked.host,
        port=asked.port,
        token=token_at(asked.token) if asked.token else "",
        roles=roles,
        bounds=Bounds(idle_s=asked.idle, open=asked.open),
        serve=_served(asked, roles.team) if asked.serve else None,
    )


def _wrong(asked: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """What speaks against the arguments."""
    for key in ("upstream", "serve"):
        value: str = getattr(asked, key) or ""
        if value and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).netloc):
            yield f"--{key}", f"{show(value)} is no address: write http://HOST/v1 or https://HOST/v1"
    if asked.host not in LOOPBACK and not asked.token:
        yield "--host", f"{asked.host!r} can be reached from other machines: name a --token, or listen at 127.0.0.1"
    if not 0 <= asked.port <= 65535:
        yield "--port", f"{asked.port} is no port: 0 to 65535"
    for key in ("idle", "open"):
        if not getattr(asked, key) > 0:
            yield f"--{key}", "is to be more than 0"
    if share_of(asked.ratio) is None:
        yield "--ratio", f"{asked.ratio!r} is no share from 0 to 1: write 0.1 or 10%"
    yield from _wrong_about_serving(asked)


def _wrong_about_serving(asked: argparse.Namespace) -> Iterator[tuple[str, str]]:
    if asked.serve and not asked.role:
        yield "--role", "is missing: --serve plays one role; say which"
    if not asked.serve:
        idle = [f"--{k.replace('_', '-')}" for k in ("role", "version", "serve_token", "redis") if getattr(asked, k)]
        idle += ["--ratio"] if asked.ratio != "0" else []
        for key in idle:
            yield key, "has no effect without --serve; name the server, or drop it"


def _roles(file: Path) -> Roles:
    document = read_document(file, (), begins="a file of roles begins with team: …")
    try:
        roles = Roles.model_validate(document.data)
    except ValidationError as error:
        found = [document.problem(f.path, f.message) for f in findings(error, Roles)]
        raise Refused(document.name, in_order([*document.problems, *found])) from None
    if document.problems:
        raise Refused(document.name, in_order(document.problems))
    return roles


def _served(asked: argparse.Namespace, team: str) -> Serve:
    return Serve(
        url=asked.serve,
        role=asked.role,
        model=f"{team}/{asked.role}" + (f"@{asked.version}" if asked.version else ""),
        key=token_at(asked.serve_token) if asked.serve_token else "",
        ratio=share_of(asked.ratio) or 0.0,
        redis=reference(asked.redis) if asked.redis else "",
    )


def _serve(settings: Settings) -> int:
    """Answer until told to stop."""
    import uvicorn

    from runtime.proxy.app import application
    from runtime.proxy.desk import Desk
    from runtime.proxy.ledger import Ledger
    from runtime.store import open_store

    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    for name in ("httpx2", "httpcore", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # addresses may hold a key, and who breaks off is no news
    store = open_store(reference(settings.store), "normal")
    ledger = Ledger(store, settings.roles.team, settings.bounds.unwritten)
    config = uvicorn.Config(
        application(settings, Desk(settings, ledger)),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    try:
        listening = config.bind_socket()
    except SystemExit:
        store.close()
        raise ServiceUnavailable(
            f"{settings.host}:{settings.port}", "cannot be listened at", "name another --port"
        ) from None
    _show(settings, store.url, listening.getsockname()[1])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _heard)
    uvicorn.Server(config).run(sockets=[listening])
    print("stopped: open conversations have ended, what was recorded is kept", flush=True)
    return DONE


def _heard(number: int, frame: object) -> None:
    """The server stops for a signal by itself, and raises it anew when it has: then there is nothing left to do."""


def _show(settings: Settings, store: str, port: int) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    print(f"recording at http://{host}:{port}/v1, passing on to {settings.provider}")
    print(f"records of {settings.roles.team} in {store}")
    if settings.serve:
        serve = settings.serve
        where = provider_of(serve.url)
        print(f"{serve.ratio:.1%} of new conversations with {serve.role} to {serve.model} at {where}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
