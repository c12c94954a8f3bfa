"""Bringing what runs to what is written down: versions started, warmed, stopped; sessions that idled out ended.

All truth is in the store, so a conductor that is started anew, on an empty cluster or beside one that runs, goes on.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import Any

from runtime.seams import Clock, now
from runtime.store import pins
from runtime.store.base import Clash
from serving.server import router, seat
from serving.settings import Serving
from serving.versions import Known, Versions
from serving.versions.ledger import SERVED

_log = logging.getLogger(__name__)
LOOK_S = 0.3
"""Pause between two looks at what is to run (s)."""
EXPIRE_S = 30.0
"""Pause between two looks for idle sessions (s)."""
AT_ONCE = 2
"""Versions that are started at once: each loads its weights, and they must not starve those that serve."""
SETTLED = ("RUNNING", "DEPLOY_FAILED", "UNHEALTHY")
"""Statuses that do not change by waiting."""
BY = "server"
"""Who moves versions that were being deployed, in the history."""


class Conductor:
    """Starts and stops applications.

    Args:
        settings: the serving file.
        versions: what is to run.
        clock: the time by which sessions idle out.
    """

    def __init__(self, settings: Serving, versions: Versions, clock: Clock = now) -> None:
        self._settings, self._versions, self._clock = settings, versions, clock
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="deploying")
        self._under_way: dict[str, Future[None]] = {}
        self._stop = threading.Event()
        self._expired = 0.0

    def run(self) -> None:
        """Look again and again, until ``stop``."""
        while not self._stop.wait(LOOK_S):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - it is tried again, for as long as it takes
                _log.exception("what runs could not be brought to what is written down; trying again")

    def stop(self) -> None:
        """End ``run``, and wait for what it was doing; what runs is left running."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def look(self) -> None:
        """Start what is missing, stop what is not wanted, end what idled out. Does not wait for starts."""
        running = statuses()
        self._under_way = {name: job for name, job in self._under_way.items() if not job.done()}
        if router.NAME not in running:
            self._begin(router.NAME, self._start_router)
        for team in self._settings.teams:
            known = self._versions.known(team)
            for each in known:
                self._tend(each, running)
            self._debut(team, known)
        if self._clock() - self._expired > EXPIRE_S:
            self._expired = self._clock()
            self._expire()

    def _debut(self, team: str, known: list[Known]) -> None:
        """Where a team has never had a current version: the one that the file names, once it is ready."""
        wanted = self._settings.teams[team].current
        first = next((v for v in known if v.alias == wanted), None)
        if first is None or self._versions.seated(team):
            return
        why = "current in the serving file"
        if first.state == "ready":
            self._versions.promote(team, first.alias, by=BY, why=why)
        elif first.state == "registered":
            self._versions.deploy(team, first.alias, by=BY, why=why)

    def _tend(self, known: Known, running: dict[str, str]) -> None:
        name = seat.app_name(known.team, known.alias)
        if name in self._under_way:
            return
        if known.state not in SERVED:
            if name in running and running[name] != "DELETING":
                self._begin(name, lambda: _delete(name))
        elif name not in running or (known.state == "deploying" and running[name] != "DELETING"):
            self._begin(name, lambda: self._start(known))

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        if name not in self._under_way:
            self._under_way[name] = self._pool.submit(work)

    def _start_router(self) -> None:
        _launch(router.application(self._settings), router.NAME, "/")
        self._waited(router.NAME)

    def _start(self, known: Known) -> None:
        """Start a version and wait: a replica that is up has shown that it decides as at its export."""
        name = seat.app_name(known.team, known.alias)
        if statuses().get(name) != "RUNNING":
            _launch(seat.application(self._settings, known.team, known.alias, known.hash), name, None)
        status = self._waited(name)
        if known.state != "deploying" or self._stop.is_set():
            return  # it was up before, and is tried again for as long as it is wanted
        if status == "RUNNING":
            self._settle(known, "ready", "")
            return
        reason = reason_of(name, status)
        _log.warning("%s does not start: %s", name, reason)
        self._settle(known, "failed", reason)
        _delete(name)

    def _waited(self, name: str) -> str:
        """The status of an application that is being started, once it is settled or has taken too long."""
        deadline = monotonic() + self._settings.limits.start_s
        while (status := statuses().get(name, "NOT_STARTED")) not in SETTLED and monotonic() < deadline:
            if self._stop.wait(LOOK_S):
                break
        return status

    def _settle(self, known: Known, state: Any, reason: str) -> None:
        try:
            self._versions.settle(known, state, reason, BY)
        except Clash:
            _log.info("%s %s was moved while it was starting", known.team, known.alias)

    def _expire(self) -> None:
        before = self._clock() - self._settings.limits.idle_s
        for team in self._settings.teams:
            ended = self._versions.store.write(lambda c, t=team: pins.expire(c, t, before, self._clock()))
            if ended:
                _log.info("%d sessions of %s idled out", ended, team)


def _launch(application: Any, name: str, route: str | None) -> None:
    """Have Serve start an application; does not wait until it runs."""
    from ray import serve

    serve.run_many(
        [serve.RunTarget(target=application, name=name, route_prefix=route)],
        wait_for_ingress_deployment_creation=False,
        wait_for_applications_running=False,
    )


def statuses() -> dict[str, str]:
    """What runs on Serve: the status of each application."""
    from ray import serve

    return {name: str(app.status.value) for name, app in serve.status().applications.items()}


def reason_of(name: str, status: str) -> str:
    """Why an application did not start, in a line."""
    from ray import serve

    app = serve.status().applications.get(name)
    said = " ".join(d.message for d in app.deployments.values()) if app else ""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    refused = [line for line in lines if "RefusedExport" in line or "Error" in line]
    return (refused or lines or [f"it is {status}"])[-1][:500]


def _delete(name: str) -> None:
    from ray import serve

    serve.delete(name, _blocking=False)
