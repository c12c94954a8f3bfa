"""Requests passed on, and answers passed back byte for byte, with a copy for the record."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2

from runtime.proxy.settings import Bounds

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

OF_THE_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"te",
     b"trailer", b"transfer-encoding", b"upgrade")
)  # fmt: skip
"""Headers that are about one connection (RFC 9110, section 7.6.1)."""
TOKEN = b"x-proxy-token"
REPLACED = frozenset((b"host", b"content-length", b"accept-encoding", b"expect", TOKEN))
"""Headers of a request that are made anew, or are for the proxy only."""
PLAIN = (b"accept-encoding", b"identity")
"""Answers are asked for uncompressed, so that the copy can be read."""


class Unreachable(Exception):
    """The upstream gave no answer: what happened, in a line that names no key."""


class Upstream:
    """The endpoint whose answers go through.

    Args:
        url: its address, to which the path behind ``/v1`` is added.
        bounds: of time and number.
    """

    def __init__(self, url: str, bounds: Bounds) -> None:
        self._url = url.rstrip("/")
        timeout = httpx2.Timeout(bounds.silence_s, connect=bounds.connect_s, pool=bounds.connect_s)
        limits = httpx2.Limits(max_connections=bounds.open + 1, max_keepalive_connections=bounds.open)
        nobodys = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # what one program is given is not another's
        self._client = httpx2.AsyncClient(timeout=timeout, limits=limits, cookies=nobodys, follow_redirects=False)

    async def ask(self, method: str, path: str, headers: Iterable[Header], body: bytes) -> httpx2.Response:
        """Begin to ask; the answer's head. Whoever gets it closes it.

        Raises:
            Unreachable: there is none.
        """
        request = self._client.build_request(method, self._url + path, headers=passed_on(headers), content=body)
        try:
            return await self._client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreachable(type(error).__name__) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


@dataclass
class Heard:
    """What went through."""

    response: httpx2.Response
    limit: int
    """Bytes that are kept."""
    size: int = 0
    _parts: list[bytes] = field(default_factory=list[bytes])

    @property
    def kind(self) -> str:
        """The content type."""
        return self.response.headers.get("content-type", "")

    def add(self, part: bytes) -> None:
        """Keep a part, as long as there is room for all of it."""
        self.size += len(part)
        if self.size <= self.limit:
            self._parts.append(part)

    def body(self) -> bytes | None:
        """What was said, decoded; None: it was too long, or cannot be decoded."""
        raw = b"".join(self._parts)
        coding = self.response.headers.get("content-encoding")
        if self.size > self.limit:
            return None
        if not coding:
            return raw
        try:
            return httpx2.Response(200, headers={"content-encoding": coding}, content=raw).content
        except httpx2.DecodingError:
            return None


async def passed_back(heard: Heard, send: Send, more: Iterable[Header]) -> None:
    """Pass an answer back as it comes. Where the upstream breaks off, so does it: nothing looks complete."""
    response = heard.response
    headers = [(n.lower(), v) for n, v in response.headers.raw if n.lower() not in OF_THE_HOP]
    await send({"type": "http.response.start", "status": response.status_code, "headers": [*headers, *more]})
    try:
        async for part in response.aiter_raw():
            heard.add(part)
            await send({"type": "http.response.body", "body": part, "more_body": True})
    except httpx2.HTTPError:
        return
    await send({"type": "http.response.body", "body": b""})


def passed_on(headers: Iterable[Header]) -> list[Header]:
    """A request's headers as the upstream gets them."""
    left_out = OF_THE_HOP | REPLACED
    return [*((n, v) for n, v in headers if n.lower() not in left_out), PLAIN]
