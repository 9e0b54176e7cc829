# SPDX-License-Identifier: Apache-2.0
"""In the lab: when a capture hands over a packet, by how long before it was started.

Prints a line of JSON: for each head start the virtual time, in ms after the packet, at which the capture's file grew.
"""

import json
import socket
import subprocess
import time
from pathlib import Path

MS = 10**6
HEAD_STARTS_MS = (1300, 1650)
PACKET_NS = 1_700_000_016 * 10**9
APART_NS = 16 * 10**9
"""A multiple of the ring's timeout, 1 s, and of the 64 ms to which the kernel rounds so long a timer."""


def sleep_until(at_ns: int) -> None:
    time.sleep(max(at_ns - time.time_ns(), 0) / 1e9)


def handed_over(at_ns: int, head_start_ms: int) -> int:
    """ms from a packet at at_ns until a capture that was started so long before has written it."""
    file = Path(f"/run/{head_start_ms}.pcap")
    sleep_until(at_ns - head_start_ms * MS)
    argv = ["tcpdump", "-i", "lo", "-n", "-U", "-Z", "root", "-w", str(file), "udp"]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as capture:
        sleep_until(at_ns)
        before = file.stat().st_size
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"x", ("127.0.0.1", 9))
        while file.stat().st_size == before:
            time.sleep(0.001)
        took_ms = (time.time_ns() - at_ns) // MS
        capture.terminate()
    return took_ms


subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
print(json.dumps([handed_over(PACKET_NS + n * APART_NS, head) for n, head in enumerate(HEAD_STARTS_MS)]))
