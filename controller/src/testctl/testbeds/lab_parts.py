# SPDX-License-Identifier: Apache-2.0
"""A lab of several kernels: a process for each part of a point, all in one virtual time (shared_time.py)."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import TestbedError

from testctl.core.outcome import FlowOutcome, Outcome
from testctl.core.point import PointSpec
from testctl.lab import machine, memory, shared_time
from testctl.lab.boot_code import BootCode
from testctl.lab.cpu_pinning import own_processor
from testctl.system import temporary
from testctl.system.process_groups import end
from testctl.system.subprocesses import Process, wait
from testctl.testbeds.network import device

WAITED = "waited"
"""The file in a part's directory with how many ns its kernel waited for the others (lab/kernel/lab_links_time.c)."""


def run_parts(
    point: PointSpec,
    kernels: Sequence[Path],
    workdir: Path,
    wall_limit_s: float,
    program: Path | None = None,
    code: BootCode | None = None,
    seccomp: bool | None = None,
    parameters: Sequence[str] = (),
) -> Outcome:
    """As machine.run_point, with a kernel for each of the point's parts."""
    cuts = shared_time.cuts(point, point.parts)
    memory_mb = memory.lab_mb(point)
    with ExitStack() as held:
        home = held.enter_context(temporary.temporary(temporary.LABS))
        processors = len(os.sched_getaffinity(0))
        shared = held.enter_context(shared_time.shared_memory(len(point.parts), cuts, processors))
        processes: list[Process] = []
        homes = [home / str(index) for index in range(len(point.parts))]
        for index, (own, kernel) in enumerate(zip(homes, kernels, strict=True)):
            own.mkdir()
            part = {"index": index, "memory": str(shared), "waited": WAITED, "links": _links(point, cuts, index)}
            raw = workdir.resolve()
            here = replace(point, kernel=point.parts[index].kernel)
            spec = machine.orders_of(own, here, raw, "point", [own, raw], {"part": part})
            cpu = held.enter_context(own_processor())
            process = machine.boot(own, kernel, spec, memory_mb, program, cpu, code, seccomp, parameters)
            held.callback(end, process)
            processes.append(process)
        if failed := _wait_for_all(point, processes, homes, shared, wall_limit_s):
            return failed
        for name in (machine.KERNEL_LOG, machine.TRACE):
            _join(name, point, workdir)
        outcomes = [machine.outcome_in(own, point, process) for own, process in zip(homes, processes, strict=True)]
        waited = {
            f"waited: {', '.join(part.entities)}": _waited_s(own) for part, own in zip(point.parts, homes, strict=True)
        }
        wall = {name: max(outcome.wall[name] for outcome in outcomes) for name in outcomes[0].wall}
        return replace(merged(outcomes), wall={**wall, **waited})


def _waited_s(home: Path) -> float:
    """How long a kernel waited for the others, of the machine's time; 0 where it ended before it could say so."""
    if not (home / WAITED).exists():
        return 0.0
    return int((home / WAITED).read_text(encoding="ascii")) / 1e9


def _wait_for_all(
    point: PointSpec, processes: Sequence[Process], homes: Sequence[Path], shared: Path, limit_s: float
) -> Outcome | None:
    """Until all have ended, or the others wait for those that have failed: the first of these outcomes.

    Raises TestbedError if it takes too long, or one ends without a result.
    """
    until = time.monotonic() + limit_s
    left = list(range(len(processes)))
    failed: dict[int, Outcome] = {}
    while left and not (failed and shared_time.joined(shared) >= len(left)):
        for index in [index for index in left if wait(processes[index], machine.LOOK_S / len(left))]:
            left.remove(index)
            try:
                outcome = machine.outcome_in(homes[index], point, processes[index])
            except TestbedError as error:
                raise TestbedError(f"the kernel of {', '.join(point.parts[index].entities)}: {error}") from error
            if outcome.error or outcome.skip:
                failed[index] = outcome
        if left and time.monotonic() > until:
            raise TestbedError(f"the lab's kernels ran for more than {limit_s:g} s of wall time and were ended")
    return failed[min(failed)] if failed else None


def _join(name: str, point: PointSpec, workdir: Path) -> None:
    """What the parts' kernels logged or traced, where they were to, in the file of a lab with one kernel."""
    files = {part.entities: workdir / f"{part.entities[0]}.{name}" for part in point.parts}
    texts = [
        f"# {', '.join(names)}\n{file.read_text(encoding='utf-8', errors='replace')}"
        for names, file in files.items()
        if file.exists()
    ]
    if texts:
        (workdir / name).write_text("".join(texts), encoding="utf-8")
    for file in files.values():
        file.unlink(missing_ok=True)


def _links(point: PointSpec, cuts: Sequence[shared_time.Cut], index: int) -> list[dict[str, Any]]:
    """The links of one part for lab/boot/kernel_links.py; spaces and devices as testbeds/network.py names them."""
    links = []
    for cut in cuts:
        for side in (0, 1):
            if cut.parts[side] == index:
                own, other = cut.ends[side], cut.ends[1 - side]
                links.append({
                    "number": cut.number, "kernel": cut.parts[1 - side], "ahead": cut.ahead[side] > 0,
                    "own": [own, device(own, other, point.topology)],
                    "other": [other, device(other, own, point.topology)],
                })  # fmt: skip
    return links


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of a point from its parts' outcomes, the first part's where it is one thing."""
    first = outcomes[0]
    return replace(
        first,
        entities={name: entity for outcome in outcomes for name, entity in outcome.entities.items()},
        flows={name: _flow([outcome.flows[name] for outcome in outcomes]) for name in first.flows},
        collected={name: results for outcome in outcomes for name, results in outcome.collected.items()},
        notes={name: text for outcome in outcomes for name, text in outcome.notes.items()},
        drift=[text for outcome in outcomes for text in outcome.drift],
        kernel_faults=[text for outcome in outcomes for text in outcome.kernel_faults],
        end_ns=max(outcome.end_ns for outcome in outcomes),
    )


def _flow(ends: Sequence[FlowOutcome]) -> FlowOutcome:
    """Each end from the part that has it."""
    client, server = (
        next((flow.ends[side] for flow in ends if flow.ends[side].raw), flow_end)
        for side, flow_end in enumerate(ends[0].ends)
    )
    return FlowOutcome(client, server)
