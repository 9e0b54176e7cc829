# SPDX-License-Identifier: Apache-2.0
"""Runs as root in a network namespace of its own: congestion controls of lab/cc in the running kernel.

Started under `unshare --net --mount`, with names of congestion controls.  Each is registered, carries
a transfer over a bottleneck that loses packets, is unregistered, and what it decided is compared with
the same code in this process, event by event.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from testctl_agent.cc.host import Algorithm, replay
from testctl_agent.cc.interface import Operation, Record
from testctl_agent.cc.struct_ops import Registered, available

LAB_CC = Path(__file__).parents[3] / "lab" / "cc"
BYTES = 4_000_000
CLONE_NEWNET = 0x40000000


def run(command: str) -> None:
    subprocess.run(command.split(), check=True)


def listen(namespace: int) -> socket.socket:
    """A listening socket of another namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as own, open(f"/proc/{namespace}/ns/net") as other:
        assert libc.setns(other.fileno(), CLONE_NEWNET) == 0
        run("ip link set lo up")
        run("ip link set far up")
        run("ip address add 10.0.0.2/24 dev far")
        server = socket.create_server(("0.0.0.0", 5000))
        assert libc.setns(own.fileno(), CLONE_NEWNET) == 0
    return server


def transfer(name: str, server: socket.socket) -> int:
    """Send BYTES with a congestion control; returns how many arrived."""
    return transfer_to(server, name, lambda sender: None)


def transfer_to(server: socket.socket, name: str, before_end: Callable[[socket.socket], None]) -> int:
    """The same, with something done to the sender's socket when all is written."""
    got = []

    def receive() -> None:
        peer, _ = server.accept()
        with peer:
            got.append(sum(len(data) for data in iter(lambda: peer.recv(1 << 16), b"")))

    receiver = threading.Thread(target=receive)
    receiver.start()
    with socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        assert sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == name.encode()
        sender.connect(("10.0.0.2", 5000))
        sender.sendall(bytes(BYTES))
        before_end(sender)
    receiver.join()
    return got[0]


def check(name: str, server: socket.socket) -> None:
    source = LAB_CC / f"tcp_{name}.c"
    records: list[Record] = []
    with Registered(source) as registered:
        assert name in available()
        registered.trace(True)
        done = threading.Event()

        def collect() -> None:
            while not done.wait(0.02):
                records.extend(registered.records())

        collector = threading.Thread(target=collect)
        collector.start()
        try:
            assert transfer(name, server) == BYTES
        finally:
            done.set()
            collector.join()
        records.extend(registered.records())
    assert name not in available()
    did = Counter(Operation(record.operation).name for record in records)
    windows = {record.after.cwnd for record in records}
    print(f"{name}: {dict(sorted(did.items()))}, cwnd {min(windows)} to {max(windows)}")
    assert did["INIT"] == 1
    assert did["ACK"] > 100
    assert did["LOSS"] >= 1
    if name != "areno":
        assert did["RECOVERY_ENTER"] <= did["RECOVERY_ACK"]
        assert did["RECOVERY_EXIT"] >= 1
    wrong = replay(Algorithm(source), records)
    assert not wrong, "\n".join(wrong[:10])


def main() -> None:
    before = available()
    far = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    try:
        while os.readlink(f"/proc/{far.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        run("ip link set lo up")
        run(f"ip link add near type veth peer name far netns {far.pid}")
        run("ip address add 10.0.0.1/24 dev near")
        run("ip link set near up")
        run("tc qdisc add dev near root tbf rate 100mbit burst 20kb limit 60kb")
        with listen(far.pid) as server:
            for name in sys.argv[1:]:
                check(name, server)
    finally:
        far.kill()
        far.wait()
    assert available() == before
    print("all is as before")


if __name__ == "__main__":
    main()
