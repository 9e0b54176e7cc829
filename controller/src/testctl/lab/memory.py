# SPDX-License-Identifier: Apache-2.0
"""The memory of a lab, computed from its point; the model was measured with stars and dumbbells of 3 to 200 hosts."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from testctl_agent.spec.errors import PlanError

from testctl.core.point import PointSpec

MIN_MB = 1024
"""TCP's limits depend on the memory, so all labs up to 18 hosts have the same memory."""
SET = "TESTCTL_LAB_MEMORY_MB"
"""Environment variable: the memory of every lab, instead of the computed value."""

RING_KIB = 32 * 1024
"""Default ring of a capture (a test checks that it equals the agent's)."""
RINGS_KIB = 512 * 1024
"""Total of all captures' rings in a lab; from 17 captures on each ring is smaller than RING_KIB."""
RING_MIN_KIB = 4 * 1024

_BASE_MB = 160
_AGENT_MB = 10
_CAPTURE_MB = 5
_END_MB = 2
"""The kernel, Python and cached files; an agent; a tcpdump without its ring; a generator."""
_CONNECTION_KIB = 256
"""Data of one connection in the network and in its buffers."""
_AT_ONCE = 512
"""Connections of a flow's requests that hold data at the same time, at most."""


def captures(point: PointSpec) -> int:
    return sum("capture" in collectors for collectors in point.collect.values())


def ring_kib(point: PointSpec) -> int:
    """The ring of each capture.

    Its size only limits how long tcpdump may be delayed; a lab's time stands still while tcpdump runs.
    """
    return max(RING_MIN_KIB, min(RING_KIB, RINGS_KIB // max(captures(point), 1)))


def with_rings(point: PointSpec) -> PointSpec:
    """The point with the size of its captures' rings, if it is not the default."""
    size = ring_kib(point)
    if size >= RING_KIB:
        return point
    collect = {
        entity: {
            name: {**options, "ring_kib": size} if name == "capture" else options
            for name, options in collectors.items()
        }
        for entity, collectors in point.collect.items()
    }
    return replace(point, collect=collect)


def lab_mb(point: PointSpec) -> int:
    """The memory of each kernel of a point's lab in MB.  Raises PlanError if the environment's value is no number."""
    if (text := os.environ.get(SET, "")) != "":
        if not re.fullmatch(r"[1-9][0-9]{1,6}", text):
            raise PlanError(f"{SET}: want a lab's memory in MB, such as 2048; got {text!r}")
        return int(text)
    return max(MIN_MB, _kernel_mb(point))


def given_mb(point: PointSpec) -> int:
    """The memory that a point's lab is given, in MB, with all its kernels.  Raises as lab_mb."""
    return lab_mb(point) * max(len(point.parts), 1)


def needed_mb(point: PointSpec) -> int:
    """Estimate of the memory that a point needs, in MB, with all its kernels."""
    return _kernel_mb(point) + _BASE_MB * max(len(point.parts) - 1, 0)


def _kernel_mb(point: PointSpec) -> int:
    agents, rings = len(point.topology.entities), captures(point)
    connections = sum(min(flow.parallel, _AT_ONCE) if flow.asks else flow.parallel for flow in point.flows)
    kib = rings * ring_kib(point) + connections * _CONNECTION_KIB
    need = _BASE_MB + agents * _AGENT_MB + rings * _CAPTURE_MB + 2 * len(point.flows) * _END_MB + kib // 1024
    return -(-need // 64) * 64


def shortage(mb: int, jobs: int, free_mb: int) -> str:
    """Why `jobs` labs of this size do not fit into the machine's free memory, or ""."""
    if mb * jobs <= free_mb:
        return ""
    labs = f"{jobs} labs at once need about {jobs} x {mb} MB" if jobs > 1 else f"a lab needs about {mb} MB"
    return f"{labs} of memory, and this machine has {free_mb} MB free" + (
        f": want --jobs {free_mb // mb}" if free_mb >= mb and jobs > 1 else ""
    )


def contents(point: PointSpec) -> str:
    """The parts of a point that need memory, as text."""
    topology = point.topology
    counts = {"host": len(topology.hosts), "switch": len(topology.switches), "capture": captures(point)}
    ending = {"switch": "es"}
    return ", ".join(f"{n} {what}{'' if n == 1 else ending.get(what, 's')}" for what, n in counts.items())
