# SPDX-License-Identifier: Apache-2.0
"""Congestion controls of lab/cc: creates one from the template, and checks one with the compilers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from testctl_agent.cc import struct_ops
from testctl_agent.cc.compile import BPF, HOST, compiled, name_of
from testctl_agent.spec.errors import PlanError, ProgramError

from testctl.system import checkout

IN_KERNELS = frozenset(
    ("reno", "cubic", "bic", "westwood", "htcp", "highspeed", "hybla", "vegas", "nv", "scalable", "lp", "veno", "yeah",
     "illinois", "dctcp", "cdg", "bbr")
)  # fmt: skip
"""Linux's own congestion controls: a second one of the same name can't be registered."""


def source_of(name: str) -> Path:
    """lab/cc/tcp_NAME.c.  Raises PlanError for an invalid name."""
    path = checkout.lab() / "cc" / f"tcp_{name}.c"
    try:
        name_of(path)
    except ProgramError as error:
        raise PlanError(
            f"cc {name!r}: want at most 15 lower-case letters, digits and '_', a letter first (Linux's limit)"
        ) from error
    return path


def names() -> dict[str, str]:
    """Name -> where it comes from, the project's own first."""
    own = {path.stem.removeprefix("tcp_"): str(path) for path in sorted((checkout.lab() / "cc").glob("tcp_*.c"))}
    return own | dict.fromkeys(sorted(IN_KERNELS), "Linux")


def create(name: str) -> tuple[Path, Path | None]:
    """Write lab/cc/tcp_NAME.c from lab/cc/new and, in a checkout, its test; returns their paths.

    Raises PlanError for a name that is invalid or in use; no file is overwritten.
    """
    source = source_of(name)
    if checkout.packaged():
        raise PlanError(f"cc {name}: {source.parent} is of an installed package; copy testctl's files with: testctl "
                        f"files DIR, and set {checkout.GIVEN}=DIR")  # fmt: skip
    tests = checkout.root() / "agents" / "tests" / "cc"
    test = tests / f"test_{name}.py" if tests.is_dir() else None
    made = {source: "tcp_NAME.c"} | ({test: "test_NAME.py"} if test else {})
    if name in IN_KERNELS:
        raise PlanError(f"cc {name}: Linux has a congestion control of that name; choose another")
    for path in made:
        if path.exists():
            raise PlanError(f"cc {name}: {path} is there already; choose another name")
    for path, template in made.items():
        text = (checkout.lab() / "cc" / "new" / template).read_text(encoding="utf-8")
        path.write_text(text.replace("NAME", name), encoding="utf-8")
    return source, test


def check(name: str) -> Iterator[str]:
    """Compile it for this machine and as BPF, and run this kernel's verifier; yields a line for each step.

    Raises ProgramError with the compiler's message, TestbedError with the verifier's.
    """
    source = source_of(name)
    if not source.is_file():
        have = ", ".join(own for own, where in names().items() if where != "Linux")
        raise PlanError(f"cc {name}: no {source}; there are {have}")
    if "TESTCTL_CC" not in source.read_text(encoding="utf-8"):
        raise PlanError(f"cc {name}: {source} has no TESTCTL_CC: it can only be built into a kernel")
    compiled(source, HOST)
    yield f"{name}: compiles for this machine"
    compiled(source, BPF)
    yield f"{name}: compiles as BPF"
    missing = struct_ops.unavailable() or ("" if os.geteuid() == 0 else "that wants root")
    if missing:
        yield f"{name}: not verified: {missing}"
        return
    struct_ops.verify(source)
    yield f"{name}: this kernel's verifier accepts it"
