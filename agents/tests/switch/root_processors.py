# SPDX-License-Identifier: Apache-2.0
"""Runs as root in a network namespace of its own: data of one flow, sent from two processors at once, is counted whole:
but for what the processors dropped before it came to the switch.

Started under `unshare --net --mount`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

from testctl_agent.switch import backend as backends
from testctl_agent.switch.ebpf import EbpfBackend

from agents.tests.switch.packets import Segment, mac

PACKETS = 60_000
"""Of each processor."""
STATIONS = {"to_a": 1, "to_b": 2}


def send(processor: int, frame: bytes) -> None:
    """In a process of its own, from one processor."""
    os.sched_setaffinity(0, {processor})
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind(("end_a", 0))
        for _ in range(PACKETS):
            sock.send(frame)


def steering(device: str) -> str:
    return Path(f"/sys/class/net/{device}/queues/rx-0/rps_cpus").read_text(encoding="ascii").strip()


def main() -> None:
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    for device in STATIONS:
        far = device.replace("to_", "end_")
        subprocess.run(["ip", "link", "add", "name", device, "type", "veth", "peer", "name", far], check=True)
        for one in (device, far):
            Path(f"/proc/sys/net/ipv6/conf/{one}/disable_ipv6").write_text("1", encoding="ascii")
            subprocess.run(["ip", "link", "set", "dev", one, "up"], check=True)
    before = [steering(device) for device in STATIONS]
    forwarding = {":".join(f"{byte:02x}" for byte in mac(number)): device for device, number in STATIONS.items()}
    switch = backends.load("ebpf", {f"switch:{device}": device for device in STATIONS}, forwarding)
    assert isinstance(switch, EbpfBackend)
    segment = Segment(seq=1, payload=bytes(100))
    switch.apply("", "flows", f"bulk/0 tcp 10.0.0.1:{segment.sport} 10.0.0.2:{segment.dport}")
    children = []
    for processor in sorted(os.sched_getaffinity(0))[:2]:
        if (pid := os.fork()) == 0:
            send(processor, segment.build())
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * len(children)
    arrived = int(Path("/sys/class/net/end_a/statistics/tx_packets").read_text(encoding="ascii"))
    assert arrived > len(children) * PACKETS // 2, f"of {len(children) * PACKETS} the switch's queue took {arrived}"
    until = time.monotonic() + 60
    while (counted := sum(switch._loaded.driver.register("data_seen"))) != arrived and time.monotonic() < until:
        time.sleep(0.05)
    print(f"{len(children)} processors, {counted} of {arrived} counted")
    assert counted == arrived
    switch.close()
    assert [steering(device) for device in STATIONS] == before
    print("all counted")


if __name__ == "__main__":
    main()
