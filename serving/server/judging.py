"""Rollouts by evidence, beside the conductor: one controller a team, in threads of its own."""

import threading
from collections.abc import Collection, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from serving.regressions.demanding import Demanding
from serving.rollout.controller import Controller
from serving.rollout.plan import Plan
from serving.rollout.settling import Versions as Facts
from serving.rollout.settling import blind_terms
from serving.settings import Serving
from serving.steering import Steering
from serving.versions import Versions


@contextmanager
def judged(settings: Serving, versions: Versions) -> Generator[None]:
    """Judge canaries by the file's plan, from here to the end of the block; without a plan, nobody does."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=_controller(settings, versions, team).run, args=(stop,), name=f"rollout-{team}")
        for team in settings.teams
        if settings.rollout is not None
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _controller(settings: Serving, versions: Versions, team: str) -> Controller:
    assert settings.rollout is not None, "without a plan there is no controller"
    plan, registry = settings.rollout, versions.registries[team]

    @cache
    def terms(alias: str) -> Collection[str]:
        if plan.reward.source != "terms":
            return ()
        from assembly.versions import load_version

        content = versions.version(team, alias).hash
        return blind_terms(load_version(registry.fetch(content, Path(settings.place / "fetched"))).judge)

    facts = Facts(alias=lambda name: versions.version(team, name).alias, terms=terms)
    return Controller(versions.store, team, plan, _steering(settings, versions, team, plan), facts)


def _steering(settings: Serving, versions: Versions, team: str, plan: Plan) -> Steering:
    """Who moves traffic: where the plan names regression cases, only after they have been tried."""
    if plan.regressions is None:
        return versions
    return Demanding(versions, Path(plan.regressions), settings.place / "fetched", settings.teams[team].greedy)
