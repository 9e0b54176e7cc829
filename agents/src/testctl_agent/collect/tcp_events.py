# SPDX-License-Identifier: Apache-2.0
"""TCP's internals at every ACK, transmission and timeout of this host (tcp_trace/tcp_event.h).

The lab's kernel keeps the events until the end, so that no collector runs during the traffic; on a running
kernel `tgen drain` reads them from a ring.  Events that did not fit, or that the
kernel did not report (tcp_trace.c), are counted in the result's `lost`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from testctl_agent.bpf import load
from testctl_agent.collect.telemetry import clock_offset_ns
from testctl_agent.generators import tgen
from testctl_agent.params.host.tcp_events import unavailable
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.tasks.task import ProgramTask, Result, Task, written
from testctl_agent.tcp_trace.bpf import BpfTrace
from testctl_agent.tcp_trace.lab import EVENT_BYTES, LAB_FILE, LAYOUT, Counts, LabTrace

NAME = "tcp_events"
FILE = "tcp_events.bin"


def _result(counts: Counts, offset_ns: int) -> Result:
    return {"layout": LAYOUT, "records": counts.events, "lost": counts.lost, "clock_offset_ns": offset_ns}


@dataclass
class _LabTask(Task):
    """A Task without a program: the kernel records."""

    workdir: Path
    trace: LabTrace = field(default_factory=LabTrace)
    offset_ns: int = 0
    counts: Counts | None = None

    def start(self) -> None:
        self.offset_ns = clock_offset_ns()
        self.trace.on(True)

    def poll(self) -> bool:
        return self.counts is not None

    def stop(self) -> None:
        if self.counts is None:
            self.trace.on(False)
            self.counts = self.trace.save(self.workdir / FILE)

    def result(self) -> Result:
        if self.counts is None:
            raise TestbedError(f"{NAME}: has not ended")
        return _result(self.counts, self.offset_ns)

    def files(self) -> list[str]:
        return [FILE] if (self.workdir / FILE).exists() else []


@dataclass
class _BpfTask(ProgramTask):
    """`tgen drain` of the programs' ring, from start to stop."""

    trace: BpfTrace | None = None
    offset_ns: int = 0
    lost: int = 0

    def start(self) -> None:
        assert self.trace is not None
        super().start()
        self.offset_ns = clock_offset_ns()
        self.trace.on(True)

    def stop(self) -> None:
        trace, self.trace = self.trace, None
        if trace is not None:
            with ExitStack() as ends:
                ends.callback(trace.close)
                ends.callback(super().stop)
                trace.on(False)
                self.lost = trace.lost()

    def result(self) -> Result:
        records = int(super().result()["bytes"]) // EVENT_BYTES
        return _result(Counts(records, self.lost), self.offset_ns)


def task(options: Mapping[str, Value], workdir: Path) -> Task:
    """Traces all connections of this network namespace; ignores the options."""
    if LAB_FILE.exists():
        return _LabTask(workdir)
    if why := unavailable() or tgen.unavailable():
        raise TestbedError(f"{NAME}: {why}")
    trace = BpfTrace()

    argv = tgen.drain(load.map_info(trace.ring.fd).id, EVENT_BYTES, workdir / FILE)
    return _BpfTask(
        name=NAME, argv=argv, workdir=workdir, read=written(NAME, workdir / FILE), outputs=(FILE,),
        announcement=tgen.READY, trace=trace,
    )  # fmt: skip
