# SPDX-License-Identifier: Apache-2.0
"""ns a packet by BPF_PROG_TEST_RUN: the whole program on packets that each go one stage further (root);
the best of some rounds."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import bench_packets as packets
from bench_switch import HOSTS, PORT, SINK, SOURCE, SWITCH, network
from testctl_agent.bpf import load
from testctl_agent.network import netlink
from testctl_agent.switch import ebpf
from testctl_agent.switch.ebpf_ports import attached

REPEAT, ROUNDS = 200_000, 5
_IFINDEX_AT, _SKB_BYTES = 40, 192
"""ifindex in struct __sk_buff."""


def frame(far: str = "", protocol: int = 6, sport: int = PORT - 1, payload: int = 1448) -> bytes:
    """A segment of the known connection, changed as asked; checksums are not looked at."""
    macs = bytes.fromhex(((far or HOSTS[SINK][0]) + HOSTS[SOURCE][0]).replace(":", ""))
    addresses = bytes(int(part) for host in (SOURCE, SINK) for part in HOSTS[host][1].split("."))
    segment = struct.pack(">HHIIBBHHH", sport, PORT, 1, 1, 0x50, 0x10, 1000, 0, 0) + bytes(payload)
    head = struct.pack(">BBHHHBBH", 0x45, 2, 20 + len(segment), 0, 0x4000, 64, protocol, 0)
    return macs + b"\x08\x00" + head + addresses + segment


def steps(switch: ebpf.EbpfBackend) -> Iterator[tuple[str, bytes]]:
    """Stages in order; each is set up when its turn comes."""
    yield "parse, nobody's address: dropped", frame(far="02:00:00:00:00:99")
    yield "forward: not TCP", frame(protocol=47)
    yield "classify: TCP of no flow", frame(sport=9)
    yield "count: an ACK of a flow", frame(payload=0)
    yield "count: data of a flow", frame()
    switch.apply("", "fate", "drop data 4000000000 of bulk")
    yield "fate: a rule that does not fit", frame()
    switch.apply("", "fate", "drop data 4000000000 of bulk; lose 1e-9 of bulk seed 1")
    yield "loss: a hash that does not hit", frame()
    switch.apply("", "fate", "none")
    switch.apply("b", "ecn_threshold", 100_000)
    yield "ECN threshold: not reached", frame()
    switch.apply("b", "ecn_threshold", "none")
    with attached("a") as maps:
        assert maps is not None
        load.write_array(maps["telemetry_on"], struct.pack("=I", 1))
        yield "telemetry: into a full ring", frame()


def stages(_where: Path) -> None:
    with network(), packets.inside(SWITCH):
        devices = tuple(port for _, _, port in HOSTS.values())
        switch = ebpf.open_backend(devices, {mac: port for mac, _, port in HOSTS.values()})
        switch.apply("", "flows", f"bulk/0 tcp {HOSTS[SOURCE][1]}:{PORT - 1} {HOSTS[SINK][1]}:{PORT}")
        ctx = bytearray(_SKB_BYTES)
        struct.pack_into("=I", ctx, _IFINDEX_AT, netlink.index("a"))
        for name, packet in steps(switch):
            took = [packets.run(switch.program_fd, packet, REPEAT, bytes(ctx))[1] for _ in range(ROUNDS)]
            print(f"stage, {name:36} {min(took):5.0f} ns a packet (of {len(packet)} bytes)")
        switch.close()


if __name__ == "__main__":
    stages(Path())
