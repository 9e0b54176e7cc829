# SPDX-License-Identifier: Apache-2.0
"""Every packet of a switch, as its program records them (p4c_ebpf/runtime/telemetry.h): in a lab its kernel writes the
records, elsewhere `tgen drain` takes them from the program's ring.

The program is identified by its filter on the switch's devices.  The collector needs only the record's layout
from the back end that attached the program.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from testctl_agent.bpf import load
from testctl_agent.generators import tgen
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.switch import ebpf_ports, testbed_object
from testctl_agent.tasks.lab_recorder import LabRecorder
from testctl_agent.tasks.task import ProgramTask, Result, Task, written

NAME = "telemetry"
FILE = "telemetry.bin"
LAB_FILE = Path("/proc/testctl_ring")
"""In a lab: the kernel's own recorder of a ring's records (lab/kernel/lab_ring.c)."""
_ON, _LOST = "telemetry_on", "telemetry_lost"
_TRIES = 20


def clock_offset_ns() -> int:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, corrected for the time between two readings.

    The shortest of several attempts is used: in the lab every reading moves the clock by the same step, and readings
    of another process in between would be added.
    """
    best_ns, offset_ns = 1 << 62, 0
    for _ in range(_TRIES):
        before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if after - before < best_ns:
            best_ns, offset_ns = after - before, real - (before + after) // 2
    return offset_ns


@contextmanager
def _maps(device: str) -> Iterator[Mapping[str, int]]:
    """The open maps of the switch's program on a device, by name.  Raises TestbedError if it is not attached."""
    with ebpf_ports.attached(device) as maps:
        if maps is None:
            raise TestbedError(f"telemetry: device {device}: the switch's program is not there")
        yield maps


@dataclass
class Telemetry:
    """A Task: records from start to stop.

    devices   the switch's, in the order of its ports
    recorder  the task that takes the records, from the descriptor of the program's ring, which is open while it starts
    """

    devices: tuple[str, ...]
    recorder: Callable[[int], Task]
    offset_ns: int = 0
    _taking: Task | None = None

    def start(self) -> None:
        with _maps(self.devices[0]) as maps:
            load.write_array(maps[_LOST], bytes(8))
            self._taking = self.recorder(maps[testbed_object.RING])
            self._taking.start()
            self.offset_ns = clock_offset_ns()
            load.write_array(maps[_ON], struct.pack("=I", 1))

    def poll(self) -> bool:
        return self._taking is not None and self._taking.poll()

    def wait(self, timeout_s: float) -> bool:
        return self._taking is not None and self._taking.wait(timeout_s)

    def stop(self) -> None:
        if self._taking is None:
            return
        try:
            with _maps(self.devices[0]) as maps:
                load.write_array(maps[_ON], struct.pack("=I", 0))
        finally:
            self._taking.stop()

    def result(self) -> Result:
        if self._taking is None:
            raise TestbedError(f"{NAME}: has not started")
        layout, record_bytes = testbed_object.record_layout()
        records, rest = divmod(self._taking.result()["bytes"], record_bytes)
        if rest:
            raise TestbedError(f"{NAME}: want records of {record_bytes} bytes; got {rest} bytes after the last of them")
        with _maps(self.devices[0]) as maps:
            (lost,) = struct.unpack("=Q", load.read_array(maps[_LOST], 8))
        ports = {str(number): device for number, device in enumerate(self.devices, 1)}
        return {"layout": layout, "records": records, "ports": ports, "lost": lost, "clock_offset_ns": self.offset_ns}

    def files(self) -> list[str]:
        return [] if self._taking is None else self._taking.files()


def _by_kernel(workdir: Path, ring: int) -> Task:
    """The lab's kernel, which keeps nothing in the ring."""

    def read(counts: Mapping[str, int]) -> Result:
        if counts["missed"]:
            raise TestbedError(f"{NAME}: {counts['missed']} records went into the ring, which nobody reads")
        return {"bytes": counts["bytes"]}

    return LabRecorder(NAME, LAB_FILE, (str(ring),), workdir, FILE, read)


def _by_program(workdir: Path, ring: int) -> Task:
    _, record_bytes = testbed_object.record_layout()
    argv = tgen.drain(load.map_info(ring).id, record_bytes, workdir / FILE)
    return ProgramTask(
        name=NAME, argv=argv, workdir=workdir, read=written(NAME, workdir / FILE), outputs=(FILE,),
        announcement=tgen.READY,
    )  # fmt: skip


def task(options: Mapping[str, Value], workdir: Path) -> Task:
    """Options: devices ("a,b")."""
    in_lab = LAB_FILE.exists()
    if not in_lab and (why := tgen.unavailable()):
        raise TestbedError(f"{NAME}: {why}")
    devices = tuple(str(options.get("devices", "")).split(","))
    with _maps(devices[0]):
        pass  # raises now, not at the start, if it is not there
    return Telemetry(devices, partial(_by_kernel if in_lab else _by_program, workdir))
