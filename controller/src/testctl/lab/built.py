# SPDX-License-Identifier: Apache-2.0
"""The kernels in the cache: selects one that fits a plan, or explains why none does."""

from __future__ import annotations

import re
from collections.abc import Collection

from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.lab import kernel as kernels
from testctl.lab import source
from testctl.lab.inputs import CC, Inputs
from testctl.lab.kernel import INPUTS, Kernel, directory
from testctl.system.text import first_of

_MAX = 3
"""Differences that a message lists."""


def names() -> list[str]:
    """The names of the built kernels, as used in a plan."""
    return sorted({path.parent.name.rpartition("-")[0] for path in directory().glob("*-*/linux")})


def kernel_for(name: str, ccs: Collection[str] | None = ()) -> Kernel:
    """The built kernel of that name whose congestion controls are as in lab/cc.

    A kernel with exactly the present inputs is preferred, then the newest one whose used inputs are unchanged.
    For a kernel built from the user's tree, only its congestion controls are compared.

    ccs: the congestion controls that are used; None: all of lab/cc

    Raises PlanError for an invalid name; TestbedError if no kernel fits, with the differences
    and the command that builds it.
    """
    named = kernels.by_name(name)
    if named is not None:
        return _as_named(named, ccs)
    try:
        wanted = Inputs.of(source.find(name))
    except TestbedError as error:
        raise TestbedError(f"{error}; built are: {', '.join(names()) or 'none'} (in {directory()})") from error
    exact = kernels.locate(name, wanted)
    if exact.built:
        return exact
    others = []
    for kernel in _newest_first(name):
        why = wanted.differences(inputs_of(kernel), ccs)
        if not why:
            return kernel
        others.append(why)
    command = f"build it with: testctl lab build {name}"
    if not others:
        have = ", ".join(names())
        raise TestbedError(
            f"kernel {name} is not built: there is none in {directory()}"
            + (f", which has {have}" if have else "") + f"; {command}"
        )  # fmt: skip
    raise TestbedError(f"kernel {name} is to be built again: {first_of(min(others, key=len), _MAX)}; {command}")


def built(name: str, ccs: Collection[str] | None = ()) -> Kernel | None:
    """As kernel_for, or None when there is no such kernel."""
    try:
        return kernel_for(name, ccs)
    except PlanError:
        raise
    except TestbedError:
        return None


def _newest_first(name: str) -> list[Kernel]:
    built = [path for path in directory().glob(f"{name}-*") if (path / "linux").is_file() and (path / INPUTS).is_file()]
    of_name = [path for path in built if path.name.rpartition("-")[0] == name]
    return [
        Kernel(name, path.name.rpartition("-")[2], path)
        for path in sorted(of_name, key=lambda path: path.stat().st_mtime, reverse=True)
    ]


def by_key(name: str, key: str) -> Kernel | None:
    kernel = Kernel(name, key, directory() / f"{name}-{key}")
    return kernel if re.fullmatch("[0-9a-f]{16}", key) and re.fullmatch(source.NAME, name) and kernel.built else None


def inputs_of(kernel: Kernel) -> Inputs:
    """What a kernel was built from.  Raises TestbedError."""
    path = kernel.directory / INPUTS
    try:
        return Inputs.from_json(path.read_text(encoding="utf-8"))
    except TestbedError as error:
        raise TestbedError(f"{path}: {error}; remove {kernel.directory} and build it again") from error


def _as_named(kernel: Kernel, ccs: Collection[str] | None) -> Kernel:
    """A kernel from the user's tree; its congestion controls must be as in lab/cc."""
    if not ccs or not (kernel.directory / INPUTS).is_file():
        return kernel
    was = inputs_of(kernel)
    now = Inputs(was.source, was.compiler, Inputs.hashes())
    used = {f"{CC}/tcp_{cc}.c" for cc in ccs}
    why = [text for text in now.differences(was, ccs) if text.partition(" ")[0] in used]
    if why:
        raise TestbedError(
            f"kernel {kernel.name} is to be built again: {first_of(why, _MAX)}; "
            f"build it with: testctl lab build {kernel.name} --source DIR"
        )
    return kernel
