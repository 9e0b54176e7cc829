# SPDX-License-Identifier: Apache-2.0
"""The variant of a kernel with tracepoints and symbols, and the text of its trace."""

from __future__ import annotations

import re
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

from testctl.lab.built import built, inputs_of
from testctl.lab.kernel import Kernel
from testctl.lab.source import split_variant

_TIME = re.compile(r"^(.{16,}?)( +)(\d+)\.(\d{6}): ", re.MULTILINE)


def with_symbols(kernel: Kernel) -> Kernel:
    """The variant of a kernel with symbols, if it is built; else the kernel, which has names of functions only."""
    return _variant(kernel) or kernel


def with_tracepoints(kernel: Kernel) -> Kernel:
    """The variant of a kernel that has tracepoints.  Raises TestbedError if it is not built."""
    variant = _variant(kernel)
    if variant is None:
        raise TestbedError(
            f"--trace: kernel {kernel.name} has no tracepoints, want its variant of the same source; build it with: "
            f"testctl lab build {kernel.name} --trace (of a tree with --source DIR too)"
        )
    return variant


def _variant(kernel: Kernel) -> Kernel | None:
    if split_variant(kernel.name)[1]:
        return kernel
    variant = built(f"{kernel.name}-trace")
    return variant if variant and inputs_of(variant).source == inputs_of(kernel).source else None


def relative_to(trace: Path, t0_ns: int) -> None:
    """Convert the times of a trace to milliseconds from the beginning of the traffic, as in the point's records.

    t0_ns: the beginning, on the kernel's clock
    """

    def moved(match: re.Match[str]) -> str:
        ns = int(match[3]) * 10**9 + int(match[4]) * 1000 - t0_ns // 1000 * 1000
        return f"{match[1]} {ns / 1e6:12.3f} ms: "

    trace.write_text(_TIME.sub(moved, trace.read_text(encoding="utf-8", errors="replace")), encoding="utf-8")
