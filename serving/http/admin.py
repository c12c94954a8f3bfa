"""The routes by which versions are steered, for those whose token may."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, Path

from serving.access import Caller
from serving.desk import Desk
from serving.http.asking import TEAM, asker
from serving.http.bodies import Back, ChangeShown, Share, VersionShown, Why

VERSION = Annotated[str, Path(max_length=200)]
NO_REASON, BACK = Why(), Back()
AT = "/v1/teams/{team}/versions"


def steering(app: FastAPI, desk: Desk) -> None:
    """Add the routes that show versions and their history, and those that change them."""
    _looking(app, desk)
    _changing(app, desk)


def _looking(app: FastAPI, desk: Desk) -> None:
    admin = asker(desk, admin=True)

    @app.get(AT)
    async def versions(team: TEAM, caller: Caller = admin) -> list[VersionShown]:
        """A team's versions."""
        return await desk.away(_shown, desk, team)

    @app.get("/v1/teams/{team}/history")
    async def history(team: TEAM, caller: Caller = admin) -> list[ChangeShown]:
        """What was done to them, by whom and why, oldest first."""
        changes = await desk.away(desk.versions.history, team)
        return [
            ChangeShown(id=c.id, version=c.version, action=c.action, by=c.by, why=c.why, what=dict(c.what), at=c.at)
            for c in changes
        ]


def _changing(app: FastAPI, desk: Desk) -> None:
    admin = asker(desk, admin=True)

    async def done(team: str, name: str, caller: Caller, change: Callable[..., Any], **how: Any) -> VersionShown:
        def act() -> None:
            change(team, name, by=caller.name, **how)
            desk.views.refresh()

        await desk.away(act)
        return await desk.away(_one, desk, team, name)

    @app.post(AT + "/{version}/deploy")
    async def deploy(team: TEAM, version: VERSION, body: Why = NO_REASON, caller: Caller = admin) -> VersionShown:
        """Have a version started and warmed: `ready` or `failed` some time later."""
        return await done(team, version, caller, desk.versions.deploy, why=body.why)

    @app.post(AT + "/{version}/canary")
    async def canary(team: TEAM, version: VERSION, body: Share, caller: Caller = admin) -> VersionShown:
        """Give a version this share of new sessions."""
        return await done(team, version, caller, desk.versions.canary, ratio=body.ratio, why=body.why)

    @app.post(AT + "/{version}/promote")
    async def promote(team: TEAM, version: VERSION, body: Why = NO_REASON, caller: Caller = admin) -> VersionShown:
        """Make a version the one that new sessions get."""
        return await done(team, version, caller, desk.versions.promote, why=body.why)

    @app.post(AT + "/{version}/rollback")
    async def rollback(team: TEAM, version: VERSION, body: Back = BACK, caller: Caller = admin) -> VersionShown:
        """Give a version no new sessions any more; the one before takes its place if it was the current one."""
        return await done(team, version, caller, desk.versions.rollback, why=body.why, pinned=body.pinned)

    @app.post(AT + "/{version}/drain")
    async def drain(team: TEAM, version: VERSION, body: Why = NO_REASON, caller: Caller = admin) -> VersionShown:
        """Give a version no new sessions any more."""
        return await done(team, version, caller, desk.versions.drain, why=body.why)

    @app.post(AT + "/{version}/retire")
    async def retire(team: TEAM, version: VERSION, body: Why = NO_REASON, caller: Caller = admin) -> VersionShown:
        """Stop a version that no session is open on."""
        return await done(team, version, caller, desk.versions.retire, why=body.why)


def _shown(desk: Desk, team: str) -> list[VersionShown]:
    known, sessions = desk.versions.known(team), desk.versions.open_sessions(team)
    current = desk.views.of(team).current
    return [
        VersionShown(
            version=v.alias,
            hash=v.hash,
            state=v.state,
            current=v.alias == current,
            ratio=v.ratio,
            open_sessions=sessions.get(v.alias, 0),
            reason=v.reason,
            lineage=dict(v.lineage),
            at=v.at,
        )
        for v in known
    ]


def _one(desk: Desk, team: str, name: str) -> VersionShown:
    alias = desk.versions.version(team, name).alias
    return next(v for v in _shown(desk, team) if v.version == alias)
