# SPDX-License-Identifier: Apache-2.0
"""Starts the server: where it listens, and which token it wants."""

from __future__ import annotations

import ctypes
import os
import secrets
import socket
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import uvicorn
from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.serve.app import make_app
from testctl.serve.auth import Guard, is_loopback
from testctl.serve.listing import check_results

MIN_TOKEN = 16
"""Characters of a token from a file."""


def serve(results: Path, host: str, port: int, token_file: Path | None, names: Sequence[str] = ()) -> None:
    """Serve until interrupted.  Raises PlanError before listening, TestbedError when the port can't be had."""
    root = check_results(results)
    return_memory()
    own = is_loopback(host)
    token = read_token(token_file) if token_file is not None else None if own else secrets.token_urlsafe(32)
    known = [*names, *([] if own else {socket.gethostname(), socket.getfqdn(), host})]
    app = Guard(make_app(root), token, known, addresses=not own)
    with _listen(host, port) as listening:
        bound = listening.getsockname()[1]
        shown = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{bound}/"
        if token is not None and token_file is None:
            address += f"?token={token}"
        print(f"results  {root}\npage     {address}", flush=True)
        if token_file is not None:
            print(f"token    of {token_file}: open the page once as …/?token=TOKEN", flush=True)
        # No log of requests: the token stands in the first one.
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, ws="none",
                                proxy_headers=False)  # fmt: skip
        with suppress(KeyboardInterrupt):  # Ctrl-C is how it ends
            uvicorn.Server(config).run(sockets=[listening])


def return_memory() -> None:
    """From now on an array of a megabyte goes back to the system when it is freed: mallopt(3), M_MMAP_THRESHOLD.

    glibc would otherwise keep what large points took.  Other C libraries have no such function, and no need of it.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(-3, 1 << 20)


def read_token(path: Path) -> str:
    """The token in a file that its owner alone can read.  Raises PlanError."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), encoding="utf-8") as file:
            found = os.fstat(file.fileno())
            mode = stat.S_IMODE(found.st_mode)
            if not stat.S_ISREG(found.st_mode) or mode & 0o077 or found.st_uid != os.geteuid():
                raise PlanError(f"--token-file {path}: want a file of yours with mode 0600; got {mode:04o}")
            token = file.read(4096).strip()
    except (OSError, ValueError) as error:
        raise PlanError(f"--token-file {path}: can't read it: {error}") from error
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise PlanError(f"--token-file {path}: want at least {MIN_TOKEN} printable characters without spaces")
    return token


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, number)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except (OSError, OverflowError) as error:
        raise TestbedError(f"--host {host} --port {port}: can't listen there: {error}") from error
    return listening
