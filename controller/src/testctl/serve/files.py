# SPDX-License-Identifier: Apache-2.0
"""The files of a run and of a point, to be read in the browser or kept.

A name is looked up among those of a listing; symbolic links are neither listed nor followed.  A page that lies in a run
(report.html) gets an origin of its own: its scripts reach neither the server's answers nor its cookie.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from testctl_agent.spec.errors import PlanError

from testctl.results import layout
from testctl.serve import listing

MOST = 2000
"""Files of a directory that are listed."""

_DEEPEST = 4
_PIECE = 1 << 18

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".png": "image/png",
    **dict.fromkeys((".json", ".yaml", ".yml", ".txt", ".md", ".csv", ".xml", ".log"), "text/plain; charset=utf-8"),
}
"""What the browser shows; anything else is kept as a file."""

_HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline';"
    " style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "unsafe-none",  # a page with an origin of its own can't be opened with any other
    "Cache-Control": "private, no-cache",
}


def files(below: Path, *, without: str = "") -> dict[str, int]:
    """{path: bytes} of the plain files below a listed directory, by name; `without` one of its directories."""
    found = dict(_walk(below, "", _DEEPEST, without))
    return dict(sorted(found.items())[:MOST])


def endpoint(answer: Callable[..., Response]) -> Callable[[Request], Response]:
    """Answers with the parameters of the path; a PlanError is its text, and 404."""

    def answered(request: Request) -> Response:
        try:
            return answer(**request.path_params)
        except PlanError as error:
            return PlainTextResponse(f"{error}\n", 404, {"Cache-Control": "no-store"})

    return answered


def file(root: Path, run: str, path: str) -> Response:
    """Of /files/RUN/PATH.  Raises PlanError."""
    directory = listing.run_path(root, run)
    name = path
    first, _, rest = path.partition("/")
    if first == layout.POINTS:
        point, _, name = rest.partition("/")
        directory = listing.point_path(directory, point)
    if name not in files(directory, without=layout.POINTS):
        raise listing.Unknown(f"run {run[:100]!r} has no file {path[:200]!r}")
    return sent(directory / name, _HEADERS)


def sent(path: Path, headers: Mapping[str, str]) -> Response:
    """A plain file of a listing, piece by piece.  Raises PlanError."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise PlanError(f"{path.name[:200]}: can't be read: {error.strerror}") from error
    kind = _TYPES.get(path.suffix)
    more = {"Content-Length": str(os.fstat(number).st_size)}
    if kind is None:
        saved = "".join(c if (c.isascii() and c.isalnum()) or c in "._-" else "_" for c in path.name)
        more["Content-Disposition"] = f'attachment; filename="{saved}"'
    return StreamingResponse(_pieces(number), 200, {**headers, **more}, kind or "application/octet-stream")


def _pieces(number: int) -> Iterator[bytes]:
    with open(number, "rb") as file:
        left = os.fstat(number).st_size
        while left > 0 and (piece := file.read(min(_PIECE, left))):
            left -= len(piece)
            yield piece


def _walk(below: Path, prefix: str, deep: int, without: str) -> Iterator[tuple[str, int]]:
    try:
        with os.scandir(below) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(mode.st_mode):
                    yield prefix + entry.name, mode.st_size
                elif stat.S_ISDIR(mode.st_mode) and deep > 1 and entry.name != without and entry.name[:1] != ".":
                    yield from _walk(below / entry.name, f"{prefix}{entry.name}/", deep - 1, "")
    except OSError as error:
        raise PlanError(f"{below.name}: can't be listed: {error.strerror}") from error
