# SPDX-License-Identifier: Apache-2.0
"""Runs inside a lab: the same packets at the same nanoseconds through one port after the other.

TESTCTL_PORTS is JSON, name -> {"aqm", "buffer": as in a plan, or "options": [fields of port_qdisc.Options]; "child",
"filter": words of tc or "", "timer": none, or a function of a child's timer and its period}; TESTCTL_MIXES has names
for traffic.of_mix(), TESTCTL_COUNT the packets of each.  For each mix and port TESTCTL_OUT gets a capture of what
arrived behind it, "MIX-PORT/capture.pcap".  Prints JSON: mix -> port -> {"start_ns", "sent", "counters" of its qdiscs}.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

from testctl_agent.collect import capture
from testctl_agent.network import port_qdisc, qdisc
from testctl_agent.network.port_qdisc import Options
from testctl_agent.switch import ebpf_aqm
from testctl_agent.switch.ebpf_aqm import Managed

from agents.tests.lab_hosts import add, enter
from agents.tests.switch import traffic

OUT = Path(os.environ["TESTCTL_OUT"])
SO_TXTIME, SO_SNDBUFFORCE, CLOCK_MONOTONIC = 61, 32, 1
ALIGNED_NS = 2**32 * 1024
"""Runs begin at multiples of it, at which the time is 0 in the 32 bits and the units in which Linux's CoDel counts."""
QUEUED_NS = 60 * 10**9
"""So long before, packets are given to the source's queue, which takes none that are to be sent much later."""
HEADERS = 14 + 20 + 8


def sh(command: str) -> None:
    subprocess.run(command.split(), check=True)


def build() -> None:
    """source -> switch -> sink; the source's fq lets each packet go at its time, the switch hands it to its port."""
    add("source", "switch", "sink")
    far = "02:00:00:00:00:02"
    sh("ip -n switch link add in type veth peer name eth0 netns source")
    sh(f"ip -n switch link add out type veth peer name eth0 address {far} netns sink")
    for name, device in (("source", "eth0"), ("switch", "in"), ("switch", "out"), ("sink", "eth0")):
        sh(f"ip -n {name} link set {device} up")
    sh("ip -n source addr add 10.0.0.1/24 dev eth0")
    sh(f"ip -n source neigh replace 10.0.0.2 lladdr {far} dev eth0")
    sh("tc -n switch qdisc add dev in clsact")
    sh("tc -n switch filter add dev in ingress matchall action mirred egress redirect dev out")
    enter("source")
    qdisc.put_qdisc("eth0", "fq", 0x20000, qdisc.ROOT, qdisc.fq_options())


def sockets() -> dict[tuple[int, int], socket.socket]:
    """By flow and ECN field."""
    found = {}
    for flow in range(traffic.FLOWS):
        for ecn in (0, 1, 2):
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
            one.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 30)
            one.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("=iI", CLOCK_MONOTONIC, 0))
            one.bind(("10.0.0.1", 1000 + 10 * flow + ecn))
            one.connect(("10.0.0.2", 9))
            found[flow, ecn] = one
    return found


def start_of(first_ns: int, timer: tuple[str, int] | None) -> int:
    """When a run begins; with a timer its first packet, so much later, comes 1 ns after a time at which that expires.

    Our updates count from the first packet, and come before what else is due at their instant.
    """
    start = ((time.monotonic_ns() + QUEUED_NS) // ALIGNED_NS + 1) * ALIGNED_NS
    if timer is None:
        return start
    name, every = timer
    text = Path("/proc/timer_list").read_text(encoding="utf-8")
    found = re.findall(rf"\b{name}\b.*\n # expires at (\d+)-", text)
    assert len(found) == 1, text
    return start + (int(found[0]) + 1 - start - first_ns) % every


def run(mix: str, name: str, port: dict[str, Any], senders: dict[tuple[int, int], socket.socket]) -> dict[str, Any]:
    enter("switch")
    packets = traffic.of_mix(mix, int(os.environ["TESTCTL_COUNT"]))
    if "aqm" in port:
        ebpf_aqm.put("out", Managed(port["aqm"], traffic.RATE, buffer=port["buffer"]))
    else:
        qdisc.put_qdisc("out", port_qdisc.KIND, ebpf_aqm.HANDLE, qdisc.ROOT, Options(*port["options"]).pack())
    if port["filter"]:
        sh("tc -n switch qdisc add dev out clsact")
        sh(f"tc -n switch filter add dev out egress matchall action {port['filter']}")
    if port["child"]:
        sh(f"tc -n switch qdisc replace dev out parent 7e58:1 {port['child']}")
    enter("sink")
    here = OUT / f"{mix}-{name}"
    here.mkdir()
    recorder = capture.task({"device": "eth0", "snap_bytes": 64, "packets": "all"}, here)
    recorder.start()
    start_ns = start_of(packets[0][0], port["timer"])
    time.sleep((start_ns - QUEUED_NS - time.monotonic_ns()) / 1e9)
    last = sent = 0
    for number, (at, size, flow, ecn) in enumerate(packets):
        when = [(socket.SOL_SOCKET, SO_TXTIME, struct.pack("=Q", start_ns + at))]
        data = struct.pack("=I", number).ljust(size - HEADERS, b"\0")
        senders[flow, ecn].sendmsg([data], when)
        last, sent = at, number + 1
    before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    offset = real - (before + after) // 2
    time.sleep((start_ns + last - time.monotonic_ns()) / 1e9 + 100)
    recorder.stop()
    assert recorder.result()["dropped"] == 0
    enter("switch")
    rows = {row["kind"]: row for row in qdisc.counters("out")}
    ebpf_aqm.remove("out")
    if port["filter"]:
        sh("tc -n switch qdisc del dev out clsact")
    return {"start_ns": start_ns + offset, "sent": sent, "counters": rows}


def main() -> None:
    build()
    senders = sockets()
    said: dict[str, Any] = {}
    for mix in os.environ["TESTCTL_MIXES"].split(","):
        for name, port in json.loads(os.environ["TESTCTL_PORTS"]).items():
            said.setdefault(mix, {})[name] = run(mix, name, port, senders)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
