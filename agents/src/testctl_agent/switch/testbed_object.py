# SPDX-License-Identifier: Apache-2.0
"""The testbed program as a BPF object: the one that TESTCTL_PROGRAM names, or the committed one of p4/build.

A program of the user's forwards behind the testbed's, which is its front then (p4c_ebpf/stages.py)."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.bpf.libbpf import Object
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.p4_program import OBJECT
from testctl_agent.switch import layout as layouts
from testctl_agent.switch.drivers.ebpf_driver import EbpfDriver
from testctl_agent.switch.layout import Layout
from testctl_agent.switch.needs import Needs, absent
from testctl_agent.switch.testbed_tables import built

PROGRAM = "switch_ingress"
FRONT = "front"
"""The directory of the testbed program as a front, below the program's."""
WAITING = "waiting"
"""The map of how many packets wait at each port, where the program reads it."""
SHARED = ("handed", "kept", "port_of", "telemetry", "telemetry_on", "telemetry_lost")
"""The maps that a front and the program behind it have in common."""
RING = "telemetry"
"""The map of the records of packets."""
_PAGE_BYTES = 4096
GIVEN = "TESTCTL_PROGRAM"


def path() -> Path:
    """The object; layout.json is in the same folder.  Raises TestbedError."""
    if given := os.environ.get(GIVEN):
        return Path(given)
    committed = built()[0].with_suffix(".o")
    if not committed.exists():
        raise TestbedError(f"{committed}: want the switch's program as a BPF object (make gen); got none")
    return committed


def layout() -> Layout:
    return layout_in(path().parent)


def layout_in(folder: Path) -> Layout:
    """Of the program which was compiled to a directory.  Raises TestbedError."""
    file = folder / "layout.json"
    try:
        return layouts.from_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise TestbedError(f"{file}: the program's layout can't be read: {error.strerror}") from error


def record_layout() -> tuple[list[dict[str, object]], int]:
    """The telemetry record: its fields as {"name", "offset", "bytes"}, and its size in bytes."""
    known = layout()
    fields: list[dict[str, object]] = [
        {"name": field.name, "offset": field.offset, "bytes": field.bytes} for field in known.telemetry
    ]
    return fields, known.record_bytes


@dataclass
class Loaded:
    """The program in the kernel, attached to nothing yet.  close() releases it."""

    object: Object
    driver: EbpfDriver
    most_copies: int
    links: bool
    """Whether links may change."""
    rounds: int = 0
    """How often a packet may come again."""

    @property
    def program_fd(self) -> int:
        return self.object.program(PROGRAM)

    def map_fd(self, name: str) -> int:
        return self.object.map(name).fd

    def set_port_of(self, ifindex: int, number: int) -> None:
        self.object.map("port_of").update(struct.pack("=I", ifindex), struct.pack("=I", number))

    def close(self) -> None:
        self.object.close()


def front() -> tuple[Path, Layout]:
    """The testbed program as a front.  Raises TestbedError."""
    file = path()
    file = file.parent / FRONT / file.name
    if not file.exists():
        raise TestbedError(f"{file}: want the switch's program as a front (make gen); got none")
    return file, layout_in(file.parent)


def behind(folder: Path, first: Loaded, ports: int) -> Loaded:
    """The user's program, compiled into a directory, behind the front that is loaded.  Raises TestbedError.

    ports: how many the switch has
    """
    known = layout_in(folder)
    shared = {name: first.object.map(name) for name in SHARED}
    loaded = Object(folder / OBJECT, entries={WAITING: ports + 1} if known.counts_waiting else {}, shared=shared)
    return Loaded(loaded, EbpfDriver(loaded, known), known.most_copies, links=True, rounds=known.rounds)


def load(known: Layout, needs: Needs | None = None, file: Path | None = None) -> Loaded:
    """The program with this layout, or the needed part of it in a lab.  Raises TestbedError with the verifier's log.

    A lab's kernel writes the telemetry's records past their ring (lab/kernel/lab_ring.c), which gets one page.
    """
    if needs is None:
        loaded = Object(file or path())
        return Loaded(loaded, EbpfDriver(loaded, known), known.most_copies, links=True)
    constants = needs.constants(known)
    loaded = Object(file or path(), {layouts.NEEDED: constants}, {RING: _PAGE_BYTES})
    driver = EbpfDriver(loaded, known, absent(known, constants), constants[layouts.MOST_COPIES])
    return Loaded(loaded, driver, known.most_copies, needs.links)
