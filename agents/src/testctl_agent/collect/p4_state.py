# SPDX-License-Identifier: Apache-2.0
"""What a P4 program of the user's holds when the traffic has ended: the cells of its registers and counters.

The program is identified by its filter on the switch's devices.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.bpf import load
from testctl_agent.bpf.libbpf import possible_cpus
from testctl_agent.generators._options import need
from testctl_agent.spec import p4_program
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.switch import ebpf_ports, layout, testbed_object
from testctl_agent.tasks.task import Result, Task

NAME = "p4_state"
FILE = "p4_state.json"
MOST_CELLS = 1 << 16
"""Of a register or a counter, that are read."""


def cells(fd: int, array: layout.Cells) -> dict[str, int] | dict[str, list[int]]:
    """The cells that are not 0: of a register its value, of a counter [packets, bytes], over all processors."""
    size = load.map_info(fd).value_bytes * (1 if array.width else possible_cpus())
    read = ((str(at), load.read_element(fd, struct.pack("=I", at), size)) for at in range(min(array.size, MOST_CELLS)))
    used = {at: data for at, data in read if any(data)}
    if array.width:
        return {at: int.from_bytes(data, sys.byteorder) for at, data in used.items()}
    numbers = {at: struct.unpack(f"={size // 8}Q", data) for at, data in used.items()}
    return {at: [sum(counts[::2]), sum(counts[1::2])] for at, counts in numbers.items()}


@dataclass
class P4State(Task):
    """A Task without a program: it reads when it is stopped.

    program  the key of the one that was compiled (spec/p4_program.py)
    """

    device: str
    program: str
    workdir: Path
    _read: int = -1

    def start(self) -> None:
        """Nothing is read before the traffic."""

    def poll(self) -> bool:
        return self._read >= 0

    def stop(self) -> None:
        if self._read >= 0:
            return
        known = testbed_object.layout_in(p4_program.directory(self.program))
        with ebpf_ports.attached(self.device) as maps:
            if maps is None:
                raise TestbedError(f"{NAME}: device {self.device}: the switch's program is not there")
            kinds = {"registers": known.registers, "counters": known.counters}
            found = {kind: {one.name: cells(maps[one.map], one) for one in of} for kind, of in kinds.items()}
        (self.workdir / FILE).write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")
        self._read = sum(len(one) for of in found.values() for one in of.values())

    def result(self) -> Result:
        return {"cells": self._read}

    def files(self) -> list[str]:
        return [FILE] if (self.workdir / FILE).exists() else []


def task(options: Mapping[str, Value], workdir: Path) -> P4State:
    """Options: devices ("a,b"), program (its key)."""
    device = str(need(options, "devices", NAME)).partition(",")[0]
    return P4State(device, str(need(options, "program", NAME)), workdir)
