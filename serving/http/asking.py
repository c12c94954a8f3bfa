"""Who sent a request, as a parameter of a route."""

from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from serving.access import Caller
from serving.desk import Desk


def asker(desk: Desk, *, admin: bool = False) -> Any:
    """Who asks; refused without a token that is known (and may steer versions, for ``admin``)."""

    async def who(request: Request, _: Annotated[Any, Depends(HTTPBearer(auto_error=False))]) -> Caller:
        return desk.access.caller(request.headers.get("authorization"), admin=admin)

    return Depends(who)
