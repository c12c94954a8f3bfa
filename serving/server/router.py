"""The routers' Serve application: HTTP at the front, versions behind, nothing kept in between."""

from typing import Any

from serving.settings import Serving

NAME = "router"
"""The application."""
CPUS = 0.01
"""CPUs that Ray keeps free for a router."""
SPARE = 64
"""Requests that Serve lets through above the router's own limit, so that it is the router who says no, and how."""


def application(settings: Serving) -> Any:
    """The routers as a Serve application."""
    from ray import serve

    def build() -> Any:
        from serving.server.router import built

        return built(settings)

    ingress: Any = serve.ingress(build)()
    deployment: Any = serve.deployment(
        ingress,
        name="router",
        num_replicas=settings.routers,
        ray_actor_options={"num_cpus": CPUS},
        max_ongoing_requests=settings.limits.in_flight + SPARE,
        graceful_shutdown_timeout_s=settings.limits.turn_s + 10.0,
        graceful_shutdown_wait_loop_s=0.5,
        health_check_period_s=1.0,
        health_check_timeout_s=10.0,
    )
    return deployment.bind()


def built(settings: Serving) -> Any:
    """A router in this process: an ASGI application that has seen the versions."""
    from runtime.access import token_at
    from runtime.actor.spec import reference
    from runtime.embedded import client_of
    from serving.access import Access, shared_secret
    from serving.desk import Desk
    from serving.http.guard import Guard
    from serving.http.measured import Measured
    from serving.http.routes import application as routes
    from serving.pins import Pins
    from serving.rollout.plan import Plan
    from serving.rollout.tables import make_tables
    from serving.server.reach import ServeReach
    from serving.server.start import versions_of
    from serving.tables import open_serving_store
    from telemetry.metrics.watching import Watch

    store = make_tables(open_serving_store(reference(settings.store_at)))

    def redis() -> Any:
        return client_of(reference(settings.redis_at))

    versions = versions_of(settings, store)
    tokens = {name: token_at(at) for name, at in settings.tokens.items()}
    access = Access(tokens, settings.http.admins, shared_secret(store))
    pins = Pins(store, redis, settings.limits.idle_s)
    desk = Desk(versions, pins, access, ServeReach(), settings.limits)
    desk.views.refresh()
    watch = Watch(0, "router", settings.watched.targets, settings.watched.otlp)
    guarded = Guard(routes(desk, (settings.rollout or Plan()).reward), settings.limits)
    return Measured(guarded, watch, frozenset(settings.teams))
