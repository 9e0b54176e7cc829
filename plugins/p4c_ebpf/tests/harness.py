# SPDX-License-Identifier: Apache-2.0
"""A P4 program in the kernel without any device: packets in, packets out, by BPF_PROG_TEST_RUN.

    target = EbpfTarget(Path("l2.json"))
    target.driver.insert(Entry("forward", {"dst": Exact(2)}, "send", {"port": 2}))
    assert target.inject(1, packet) == [(2, packet)]

Needs root.  Nothing is mocked but the devices: what is loaded is the object that a switch runs,
built so that a packet's mark is its ingress port and that what is sent lands in a ring buffer.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from p4c_ebpf import compile as compiler
from p4c_ebpf.compile import Compiled
from testctl_agent.bpf import libbpf
from testctl_agent.switch.drivers.ebpf_driver import EbpfDriver
from testctl_agent.switch.layout import from_json

from plugins.p4c_ebpf.tests.run_packet import run_packet

_PORT = struct.Struct("=2I11Q")
"""struct port of runtime/port_model.h, the spin lock first."""

_IP = 54
"""Bytes from which on the kernel runs a program on any packet; see runtime/transmit.h."""

_AGAIN = 2**32 - 1
"""TC_ACT_UNSPEC: the next filter is to take the packet."""
CACHE = Path(__file__).parents[3] / "build" / "p4"


def compiled(json: Path, harness: bool = True, first_port: int = 1) -> Compiled:
    """Compiled once for its sources, for all tests."""
    made = CACHE / compiler.translated(json, harness, first_port).layout.sources
    if not made.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as name:
            compiler.compiled(json, Path(name) / "made", harness, first_port)
            try:
                (Path(name) / "made").rename(made)
            except OSError:
                if not made.exists():  # else another process was first
                    raise
    return Compiled(made / f"{json.stem}.o", from_json((made / compiler.LAYOUT).read_text()))


class EbpfTarget:
    """A program loaded; `driver` fills its tables.  Ports 1 to 16 exist, with infinite rate.

    `json` is what p4c wrote, or a program that is compiled already.
    """

    def __init__(self, json: Path | Compiled, ports: Iterable[int] = range(1, 17)) -> None:
        self.compiled = compiled(json) if isinstance(json, Path) else json
        self.object = libbpf.Object(self.compiled.object)
        self.driver = EbpfDriver(self.object, self.compiled.layout)
        self.program = self.object.program("switch_ingress")
        self._sent = libbpf.Ring(self.object.map("sent"))
        self._telemetry: libbpf.Ring | None = None
        self.wall_ns = 0
        for port in ports:
            self.set_port(port)

    def set_port(
        self, port: int, rate_bps: int = 0, delay_ns: int = 0, buffer_bytes: int = 0, framing_bytes: int = 0
    ) -> None:
        """Make a port, or make it anew with an empty queue."""
        value = _PORT.pack(0, 1000 + port, rate_bps, delay_ns, buffer_bytes, framing_bytes, 0, 0, 0, 0, 0, 0, 0)
        ports = self.object.map("ports")
        ports.update(struct.pack("=I", port), value[: ports.value_bytes])

    def inject(self, port: int, packet: bytes, repeat: int = 1) -> list[tuple[int, bytes]]:
        """Let a packet come in at a port; what goes out, as (port, packet) in order."""
        mark, whole = (port, packet) if len(packet) >= _IP else (port | len(packet) << 16, packet.ljust(_IP, b"\0"))
        code, left, self.wall_ns = run_packet(self.program, whole, mark=mark, repeat=repeat)
        while code == _AGAIN:  # the next filter at a device is this program again
            code, left, _ = run_packet(self.program, left, mark=port)
        found = []
        for record in self._sent.drain():
            out, size = struct.unpack_from("=2I", record)
            found.append((out, record[8 : 8 + size]))
        return found

    def telemetry(self) -> list[dict[str, int]]:
        """Records since the last call, fields by name; the first call switches them on."""
        if self._telemetry is None:
            self._telemetry = libbpf.Ring(self.object.map("telemetry"))
            self.object.map("telemetry_on").update(struct.pack("=I", 0), struct.pack("=I", 1))
        fields = self.compiled.layout.telemetry
        return [
            {one.name: int.from_bytes(record[one.offset : one.offset + one.bytes], "little") for one in fields}
            for record in self._telemetry.drain()
        ]

    def close(self) -> None:
        self._sent.close()
        if self._telemetry is not None:
            self._telemetry.close()
        self.object.close()


Target = Callable[[str], EbpfTarget]
"""What the fixture `target` is."""
