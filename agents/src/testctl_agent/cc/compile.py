# SPDX-License-Identifier: Apache-2.0
"""Compiles a congestion control once: as BPF for a running kernel, or as a shared object for tests.

The agents' own have been compiled to BPF already: their objects are committed, with the hash of their sources in them
(bpf/Makefile).  The result is cached in $TESTCTL_CACHE/cc/<key>/; the key is a hash of the source, the headers in its
directory, the flags and the compiler.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import ProgramError, TestbedError
from testctl_agent.system import durable, toolchain
from testctl_agent.system.subprocesses import run

_WARNINGS = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror")


@dataclass(frozen=True)
class Target:
    """Compiler flags and file suffix for one kind of use."""

    what: str
    compiler: str
    suffix: str
    flags: tuple[str, ...]


HOST = Target("this machine", "gcc", "so", ("-O2", "-std=gnu11", "-shared", "-fPIC", *_WARNINGS))
BPF = Target("BPF", "clang", "o", ("-c", *toolchain.BPF_FLAGS, *_WARNINGS))


def name_of(source: Path) -> str:
    """The name of the congestion control in a file tcp_NAME.c.  Raises ProgramError for any other file name."""
    match = re.fullmatch(r"tcp_([a-z][a-z0-9_]{0,14})\.c", source.name)
    if match is None:
        raise ProgramError(
            f"{source}: want tcp_NAME.c, NAME of at most 15 lower-case letters, digits and '_' "
            f"(Linux's limit), a letter first; got {source.name}"
        )
    return match[1]


def compiled(source: Path, target: Target) -> Path:
    """Compile tcp_NAME.c, or take it from the cache.

    Raises ProgramError with the compiler's errors, TestbedError when there is no compiler.
    """
    return built(source, name_of(source), target, "a congestion control")


def built(source: Path, name: str, target: Target, what: str) -> Path:
    """As `compiled`, for any C source and the headers in its directory; the result's name begins with `name`."""
    try:
        texts = [path.read_bytes() for path in (source, *sorted(source.parent.glob("*.h")))]
    except OSError as error:
        raise ProgramError(f"{source}: can't be read: {error.strerror}") from error
    committed = source.with_suffix(".o")
    of_sources = hashlib.sha256(b"".join(texts)).hexdigest().encode()
    if target is BPF and committed.exists() and of_sources in committed.read_bytes():
        return committed
    compiler, version = toolchain.compiler(target.compiler, what)
    digest = hashlib.sha256(repr((source.name, texts, target.flags, version)).encode())
    cache = toolchain.cache_dir() / "cc"
    made = cache / f"{name}-{digest.hexdigest()[:24]}.{target.suffix}"
    if made.exists():
        return made
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".new-") as folder:
        new = Path(folder) / made.name
        try:
            run([compiler, *target.flags, "-o", str(new), str(source)], timeout_s=120.0)
        except TestbedError as error:
            errors = [line.strip() for line in str(error).splitlines() if "error:" in line]
            why = "\n".join(errors[:8]) or error
            raise ProgramError(f"{source}: does not compile for {target.what}: {why}") from error
        durable.publish(new, made)
    return made
