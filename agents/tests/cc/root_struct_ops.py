# SPDX-License-Identifier: Apache-2.0
"""Runs as root in a network namespace of its own: congestion controls of lab/cc in the running kernel.

Started under `unshare --net --mount`, with names of congestion controls.  Each is registered, carries
a transfer over a bottleneck that loses packets, is unregistered, and what it decided is compared with
the same code in this process, event by event.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testctl_agent.cc.host import Algorithm, replay
from testctl_agent.cc.interface import Operation, Record
from testctl_agent.cc.struct_ops import Registered, available, unregister

from agents.tests.own_host import another, run, within

LAB_CC = Path(__file__).parents[3] / "lab" / "cc"
BYTES = 4_000_000


@contextmanager
def far_end() -> Iterator[socket.socket]:
    """A listening socket of another namespace, behind a bottleneck that loses packets."""
    with another() as far:
        run("ip link set lo up")
        run(f"ip link add near type veth peer name far netns {far}")
        run("ip address add 10.0.0.1/24 dev near")
        run("ip link set near up")
        run("tc qdisc add dev near root tbf rate 100mbit burst 20kb limit 60kb")
        with within(far):
            run("ip link set lo up")
            run("ip link set far up")
            run("ip address add 10.0.0.2/24 dev far")
            server = socket.create_server(("0.0.0.0", 5000))
        with server:
            yield server


def arrives_whole(name: str, server: socket.socket) -> None:
    """Send BYTES with a congestion control."""
    assert transfer_to(server, name, lambda sender: None) == BYTES


def transfer_to(server: socket.socket, name: str, before_end: Callable[[socket.socket], None]) -> int:
    """The same, with something done to the sender's socket when all is written; returns how many bytes arrived."""
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


def recorded(registered: Registered, during: Callable[[list[Record]], None]) -> list[Record]:
    """What a congestion control did during a call, which gets the records so far: the ring is emptied all the while."""
    records: list[Record] = []
    done = threading.Event()

    def collect() -> None:
        while not done.wait(0.02):
            records.extend(registered.records())

    registered.trace(True)
    collector = threading.Thread(target=collect)
    collector.start()
    try:
        during(records)
    finally:
        done.set()
        collector.join()
    return records + registered.records()


def count_of(operation: Operation, records: list[Record]) -> int:
    return sum(record.operation == operation for record in list(records))


def check(name: str, server: socket.socket) -> None:
    source = LAB_CC / f"tcp_{name}.c"
    with Registered(source) as registered:
        assert name in available()
        records = recorded(registered, lambda _: arrives_whole(name, server))
    assert name not in available()
    did = Counter(Operation(record.operation).name for record in records)
    windows = {record.after.cwnd for record in records}
    print(f"{name}: {dict(sorted(did.items()))}, cwnd {min(windows)} to {max(windows)}")
    assert did["INIT"] == 1
    assert did["ACK"] + did["RECOVERY_ACK"] > 100
    assert did["LOSS"] >= 1
    if name != "areno":
        assert did["RECOVERY_ENTER"] <= did["RECOVERY_ACK"]
        assert did["RECOVERY_EXIT"] >= 1
    wrong = replay(Algorithm(source), records)
    assert not wrong, "\n".join(wrong[:10])


def main() -> None:
    for name in set(sys.argv[1:]) & set(available()):
        unregister(name)  # a test that was killed left it
    before = available()
    with far_end() as server:
        for name in sys.argv[1:]:
            check(name, server)
    assert available() == before
    print("all is as before")


if __name__ == "__main__":
    main()
