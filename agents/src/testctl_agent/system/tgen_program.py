# SPDX-License-Identifier: Apache-2.0
"""The traffic program tgen: where it is, and how it is compiled of the sources in agents/tgen.

In a checkout it is built by `make -C agents/tgen`.  Elsewhere it is compiled before the first point that is run, into
the cache: $TESTCTL_CACHE/tgen/<hash of the sources>/tgen.  A lab and a deployed agent get its path as $TESTCTL_TGEN.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system.own_files import agents_file
from testctl_agent.system.subprocesses import found_in_path

GIVEN = "TESTCTL_TGEN"
NAME = "tgen"
SOURCES = "agents/tgen"


def found() -> str:
    """$TESTCTL_TGEN, the checkout's, the one in the cache, or the one in PATH; "" when there is none."""
    if given := os.environ.get(GIVEN):
        return given
    source = agents_file(SOURCES)
    places = [source / NAME, _cached(source)] if source else []
    return next((str(path) for path in places if path.exists()), "") or found_in_path(NAME)


def ready() -> str:
    """As found(), and compiled if there is none.

    Raises Unavailable when the compiler is not installed, TestbedError when it fails or there are no sources.
    """
    if present := found():
        return present
    import shutil  # all that compiling needs is no use in a lab
    import tempfile

    from testctl_agent.system import durable, toolchain
    from testctl_agent.system.subprocesses import run

    source = agents_file(SOURCES)
    if source is None:
        raise TestbedError(f"tgen: neither the program nor its sources ({SOURCES}) exist here; set {GIVEN} to its path")
    program = _cached(source)
    for name in ("make", "gcc"):
        toolchain.compiler(name, "tgen, which makes the traffic,")
    durable.make_directory(program.parent.parent)
    with tempfile.TemporaryDirectory(dir=program.parent.parent, prefix=".new-") as directory:
        new = Path(directory) / "entry"
        shutil.copytree(source, new / "source", ignore=shutil.ignore_patterns(NAME, "build"))
        run(["make", "--silent", "-C", str(new / "source"), NAME], timeout_s=300.0)
        durable.rename(new / "source" / NAME, new / NAME)
        try:
            durable.publish(new, program.parent)
        except OSError:
            if not program.exists():  # not another process that was first
                raise
    return str(program)


@functools.cache
def _cached(source: Path) -> Path:
    """Where the program of these sources lies in the cache, whether it was compiled or not."""
    import hashlib

    from testctl_agent.system import toolchain

    digest = hashlib.sha256(os.uname().machine.encode())
    for path in sorted([*source.glob("*.[ch]"), source / "Makefile"]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return toolchain.cache_dir() / "tgen" / digest.hexdigest()[:16] / NAME
