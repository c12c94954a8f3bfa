"""What requests to several routes carry, who sent them, and what their answers say of the session."""

from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request, Response
from fastapi.security import HTTPBearer

from serving.access import Caller
from serving.desk import Desk

STATUSES = (400, 401, 403, 404, 409, 413, 422, 500, 503, 504)
"""With which a request may be refused."""
TEAM = Annotated[str, Path(max_length=200)]
KEY = Annotated[str, Header(alias="idempotency-key", max_length=200)]
WISH = Annotated[str, Header(alias="x-agent-version", max_length=200)]


def asker(desk: Desk, *, admin: bool = False) -> Any:
    """Who asks; refused without a token that is known (and may steer versions, for ``admin``)."""

    async def who(request: Request, _: Annotated[Any, Depends(HTTPBearer(auto_error=False))]) -> Caller:
        return desk.access.caller(request.headers.get("authorization"), admin=admin)

    return Depends(who)


def told(session: str, version: str) -> dict[str, str]:
    """The headers of an answer in a session."""
    return {"x-correlation-id": session, "x-agent-version": version}


def tell(response: Response, session: str, version: str) -> None:
    """Mark an answer with its session and version."""
    response.headers.update(told(session, version))
