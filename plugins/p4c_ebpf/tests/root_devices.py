# SPDX-License-Identifier: Apache-2.0
"""Runs as root in a network namespace of its own: the program vlan.p4 between real devices.

The kernel strips the tags of what comes in before tc sees it, which BPF_PROG_TEST_RUN does not.
"""

from __future__ import annotations

import socket
import struct
import subprocess
from pathlib import Path

from testctl_agent.bpf.libbpf import Object
from testctl_agent.network import netlink
from testctl_agent.switch import ebpf_ports, ingress
from testctl_agent.switch.drivers.driver import Entry, Exact
from testctl_agent.switch.drivers.ebpf_driver import EbpfDriver

from plugins.p4c_ebpf.tests.harness import compiled
from plugins.p4c_ebpf.tests.program_files import PROGRAMS

MACS = [0x020000000000 + number for number in range(5)]
EVERYONE = 2**48 - 1
KIND = 0x88B5
SOL_PACKET, PACKET_AUXDATA = 263, 8
TAGGED, KNOWS_TPID = 1 << 4, 1 << 6  # TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID
REST = bytes(range(1, 60))


def frame(dst: int, *words: int) -> bytes:
    return dst.to_bytes(6, "big") + MACS[1].to_bytes(6, "big") + struct.pack(f">{len(words)}H", *words) + REST


def receive(end: socket.socket) -> bytes:
    """A frame as it was on the wire: with the tag that the kernel took off."""
    data, extra, _, _ = end.recvmsg(4096, 256)
    for _, _, auxiliary in extra:
        status, _, _, _, _, tci, tpid = struct.unpack("=3I4H", auxiliary)
        if status & TAGGED:
            data = data[:12] + struct.pack(">2H", tpid if status & KNOWS_TPID else 0x8100, tci) + data[12:]
    return data


def build() -> tuple[Object, EbpfDriver, list[socket.socket]]:
    made = compiled(PROGRAMS / "vlan.json", harness=False)
    loaded = Object(made.object)
    ends = [socket.socket()]
    for number in range(1, 5):
        words = f"ip link add name to_{number} type veth peer name end_{number}"
        subprocess.run(words.split(), check=True)
        for device in (f"to_{number}", f"end_{number}"):
            Path(f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6").write_text("1")
            subprocess.run(["ip", "link", "set", "dev", device, "up"], check=True)
        index = netlink.index(f"to_{number}")
        loaded.map("port_of").update(struct.pack("=I", index), struct.pack("=I", number))
        value = struct.pack("=2I", 0, index).ljust(loaded.map("ports").value_bytes, b"\0")
        loaded.map("ports").update(struct.pack("=I", number), value)
        ingress.attach(f"to_{number}", (ebpf_ports.FILTER, loaded.program("switch_ingress")))
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        end.bind((f"end_{number}", 3))
        end.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        end.settimeout(120)
        ends.append(end)
    return loaded, EbpfDriver(loaded, made.layout), ends


def main() -> None:
    _, driver, ends = build()
    for number in range(1, 5):
        driver.insert(Entry("forward", {"dst": Exact(MACS[number])}, "send", {"port": number}))
    driver.insert(Entry("forward", {"dst": Exact(EVERYONE)}, "flood", {"group": 1}))
    driver.multicast(1, [3, 2, 4])
    driver.insert(Entry("ports", {"egress_port": Exact(2)}, "tag", {"id": 77}))
    driver.insert(Entry("ports", {"egress_port": Exact(3)}, "untag"))
    for sent, port, want in (
        ((KIND,), 2, (0x8100, 77, KIND)),
        ((0x8100, 5 << 13 | 9, KIND), 2, (0x8100, 5 << 13 | 77, KIND)),
        ((0x8100, 9, KIND), 3, (KIND,)),
        ((0x8100, 9, 0x8100, 10, KIND), 3, (0x8100, 10, KIND)),
        ((0x8100, 9, KIND), 4, (0x8100, 9, KIND)),
        ((0x88A8, 9, 0x8100, 10, KIND), 4, (0x88A8, 9, 0x8100, 10, KIND)),
        ((0x88A8, 9, 0x88A8, 10, 0x8100, 11, KIND), 4, (0x88A8, 9, 0x88A8, 10, 0x8100, 11, KIND)),
    ):
        ends[1].send(frame(MACS[port], *sent))
        assert receive(ends[port]) == frame(MACS[port], *want), (sent, port)
    for sent in ((KIND,), (0x8100, 9, KIND)):
        ends[1].send(frame(EVERYONE, *sent))
        tagged = (0x8100, 77, KIND)
        for port, want in ((2, tagged), (3, (KIND,)), (4, sent)):
            assert receive(ends[port]) == frame(EVERYONE, *want), (sent, port)
    print("tags are right on the wire")


if __name__ == "__main__":
    main()
