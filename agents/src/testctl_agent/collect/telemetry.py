# SPDX-License-Identifier: Apache-2.0
"""Every packet of a switch, as its program records them (p4c_ebpf/runtime/telemetry.h), by `tgen drain`.

The program is found by its filter on the switch's devices.  The collector needs only the record's layout
from the back end that attached the program.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.bpf import load
from testctl_agent.generators import tgen
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.switch import ebpf_ports, testbed_object
from testctl_agent.tasks.task import Announcement, ProgramTask, Result

NAME = "telemetry"
FILE = "telemetry.bin"
_RING, _ON, _LOST = "telemetry", "telemetry_on", "telemetry_lost"
_TRIES = 20


def files(options: Mapping[str, Value]) -> list[str]:
    return [FILE]


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
class Telemetry(ProgramTask):
    """Records from start to stop.  `devices`: those of the switch, in the order of its ports."""

    devices: tuple[str, ...] = ()
    offset_ns: int = 0

    def start(self) -> None:
        with _maps(self.devices[0]) as maps:
            load.write_array(maps[_LOST], bytes(8))
            super().start()
            self.offset_ns = clock_offset_ns()
            load.write_array(maps[_ON], struct.pack("=I", 1))

    def stop(self) -> None:
        try:
            with _maps(self.devices[0]) as maps:
                load.write_array(maps[_ON], struct.pack("=I", 0))
        finally:
            super().stop()

    def result(self) -> Result:
        result = super().result()
        with _maps(self.devices[0]) as maps:
            (lost,) = struct.unpack("=Q", load.read_array(maps[_LOST], 8))
        return result | {"lost": lost, "clock_offset_ns": self.offset_ns}


def task(options: Mapping[str, Value], workdir: Path) -> ProgramTask:
    """Options: devices ("a,b")."""
    if why := tgen.unavailable():
        raise TestbedError(f"telemetry: {why}")
    devices = tuple(str(options.get("devices", "")).split(","))
    with _maps(devices[0]) as maps:
        ring = load.map_info(maps[_RING]).id
    layout, record_bytes = testbed_object.record_layout()

    def read(code: int, printed: str) -> Result:
        if code != 0:
            raise TestbedError(f"telemetry: exit {code}: {printed or 'no output'}")
        return {
            "layout": layout,
            "records": (workdir / FILE).stat().st_size // record_bytes,
            "ports": {str(number): device for number, device in enumerate(devices, 1)},
        }

    argv = [tgen.binary() or tgen.BINARY, "drain", f"out={workdir / FILE}"]
    argv += [f"map_id={ring}", f"record_bytes={record_bytes}"]
    return Telemetry(
        name=NAME, argv=argv, workdir=workdir, read=read, outputs=files(options),
        announcement=Announcement("stdout", "ready\n"), devices=devices,
    )  # fmt: skip
