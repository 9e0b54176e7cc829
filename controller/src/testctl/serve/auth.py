# SPDX-License-Identifier: Apache-2.0
"""Who may ask: reading alone, under a known name of this server, with the token where one is wanted.

Host      an attacker's page whose name is made to point here (DNS rebinding) sends its own name as Host
site      a page of elsewhere may lead here, but not have anything looked up, though it could not read the answer
token     ?token=… once; the browser then has a cookie that scripts can't read and other sites don't send
headers   nothing is loaded from elsewhere, no script in the page's text is run, nobody frames the page
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Collection
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE_AGE_S = 30 * 86400

HEADERS = {
    # Vega's tooltip brings its styles at run time; scripts come from files alone, and no text is run as one.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

_LOCAL = ("localhost",)
_OTHER_NAME = "This server does not go by that name. Open it by its IP address or localhost, or start it with --name."


class Guard:
    """ASGI middleware; `token` None: none is wanted.  names: what the Host header may say beside IP addresses.

    addresses: whether any IP address is a name of this server (it listens beyond loopback).
    """

    def __init__(
        self, app: ASGIApp, token: str | None, names: Collection[str] = (), *, addresses: bool = False
    ) -> None:
        self._app = app
        self._token = token
        self._names = {name.lower() for name in (*_LOCAL, *names)}
        self._addresses = addresses
        self._pass = hmac.new(token.encode(), b"testctl serve", hashlib.sha256).hexdigest() if token else ""
        self._cookie = f"testctl_{self._pass[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope) if scope["type"] == "http" else PlainTextResponse("no", 400)
        if refusal is not None:
            await refusal(scope, receive, _with_headers(send))
        else:
            await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return _say(421, _OTHER_NAME)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("This server can only be read.\n", 405, {"Allow": "GET, HEAD"})
        if not _from_here(headers, scope["path"]):
            return _say(403, "A page of another site asked for this; open the address itself.")
        if self._token is None:
            return None
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        if given:
            return self._let_in(scope["path"], given[0])
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        if hmac.compare_digest(cookie.encode(), self._pass.encode()):
            return None
        return _say(401, "This server wants a token. Open the address that it printed when it was started.")

    def _let_in(self, path: str, given: str) -> Response:
        assert self._token is not None
        if path != "/" or not hmac.compare_digest(given.encode(), self._token.encode()):
            return _say(401, "The token is wrong. Open the address that the server printed when it was started.")
        answer = RedirectResponse("/", 303, {"Cache-Control": "no-store"})
        answer.set_cookie(self._cookie, self._pass, max_age=COOKIE_AGE_S, path="/", httponly=True, samesite="strict")
        return answer

    def _is_own(self, host: str) -> bool:
        name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
        name = name.strip("[]").lower()
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name.rstrip(".") in self._names
        return address.is_loopback or self._addresses


def _from_here(headers: Headers, path: str) -> bool:
    """Whether this page asks, or the user; of others a link may lead to the page itself (Fetch Metadata)."""
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    return path == "/" and headers.get("sec-fetch-mode") == "navigate"


def is_loopback(host: str) -> bool:
    """Whether that address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in _LOCAL


def _say(status: int, text: str) -> Response:
    return PlainTextResponse(text + "\n", status, {"Cache-Control": "no-store"})


def _with_headers(send: Send) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return told
