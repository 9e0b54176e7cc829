# SPDX-License-Identifier: Apache-2.0
"""Answers of HTTP: compressed where the browser can read that, and not sent again while they are the same."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

LEAST = 1000
"""Bytes below which compression gains nothing."""

LEVEL = 4
"""Of gzip for answers that are made for a request: 10 ms a megabyte."""


def answer(request: Request, body: bytes, kind: str, smaller: Callable[[], bytes] | None = None) -> Response:
    """An answer of a media type; 304 if the browser has it.  smaller: the body compressed, where that is kept.

    The browser keeps it and asks each time whether it is still the same.  It is never `immutable`: a run is not
    changed once it is complete, but another version of testctl may show it in another way, and a run may be removed.
    """
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if tag in [one.strip() for one in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    if len(body) >= LEAST and _reads_gzip(request.headers.get("accept-encoding", "")):
        body = compressed(body, LEVEL) if smaller is None else smaller()
        headers["Content-Encoding"] = "gzip"
    return Response(body, 200, headers, kind)


def compressed(body: bytes, level: int) -> bytes:
    """The body as gzip, the same bytes each time."""
    return gzip.compress(body, level, mtime=0)


def _reads_gzip(accepted: str) -> bool:
    """By the Accept-Encoding header (RFC 9110, 12.5.3)."""
    for one in accepted.split(","):
        coding, *parameters = one.replace(" ", "").lower().split(";")
        if coding == "gzip":
            return not any(text.startswith("q=") and not text[2:].strip("0.") for text in parameters)
    return False
