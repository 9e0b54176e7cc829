# SPDX-License-Identifier: Apache-2.0
"""Compiles the C sources beside this file, once for each change of them."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path

from testctl_agent.spec.errors import TestbedError, Unavailable
from testctl_agent.system import durable, toolchain

from testctl.records.native.structures import Library

GIVEN = "TESTCTL_PACKETS"
"""Environment variable: the path of a library that was compiled otherwise."""
SOURCES = tuple(Path(__file__).parent / name for name in ("frame.c", "packets.c", "rows.c", "search.c", "source.c"))
HEADER = Path(__file__).parent / "packets.h"
SEARCH = Path(__file__).parent / "search.h"
HEADERS = (Path(__file__).parent / "rows.h", SEARCH)
FLAGS = ("-std=gnu11", "-O3", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")
NAME = "packets.so"


@functools.cache
def ready() -> Library:
    """The library, compiled if it is not in the cache.

    Raises Unavailable when the compiler is not installed, TestbedError when it fails.
    """
    given = os.environ.get(GIVEN)
    return Library(Path(given) if given else _compiled())


@functools.cache
def if_compiled() -> Library | None:
    """The library; None where there is no compiler."""
    try:
        return ready()
    except Unavailable:
        return None


def _compiled() -> Path:
    return compiled((HEADER, *HEADERS, *SOURCES), "records", NAME, "the reader of captures")


def compiled(sources: Sequence[Path], place: str, name: str, what: str) -> Path:
    """The library of C sources and headers, by its name, compiled if it is not in the cache's directory `place`.

    Raises Unavailable, which says what can't be compiled, TestbedError.
    """
    import hashlib

    digest = hashlib.sha256(repr((os.uname().machine, FLAGS)).encode())
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    made = toolchain.cache_dir() / place / digest.hexdigest()[:16] / name
    if not made.exists():
        includes = dict.fromkeys(f"-I{path.parent}" for path in sources if path.suffix == ".h")
        _compile([*includes, *(str(path) for path in sources if path.suffix == ".c")], made, what)
    return made


def _compile(arguments: Sequence[str], made: Path, what: str) -> None:
    from testctl.system.subprocesses import run
    from testctl.system.temporary import temporary

    compiler, _ = toolchain.compiler("gcc", what)
    durable.make_directory(made.parent.parent)
    with temporary(".new-", made.parent.parent) as directory:
        new = directory / "entry"
        new.mkdir()
        run([compiler, *FLAGS, "-o", str(new / made.name), *arguments], timeout_s=300.0)
        try:
            durable.publish(new, made.parent)
        except OSError as error:
            if not made.exists():  # not another process that was first
                raise TestbedError(f"{made}: can't be written: {error.strerror or error}") from error
