# SPDX-License-Identifier: Apache-2.0
"""One experiment for a congestion control, built into the lab's kernel or as BPF of the running one.

    python one_experiment.py lab|root NAME FILE [PACKETS]

A flow of at least 12 MB over a switch port of 100 Mb/s with 60 kB of buffer, and a switch that drops ten segments (or
PACKETS), by their numbers.  A busy machine merges ACKs before the congestion control sees them, so the sender goes on
until it has decided on ACKS of them: the result does not depend on the load.  Everything that the congestion control
received and decided goes to FILE, struct cc_trace_record one by one.  `root` runs under `unshare --net --mount`, `lab`
as the only program of a lab.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testctl_agent.cc.interface import Operation
from testctl_agent.cc.struct_ops import Registered
from testctl_agent.switch import backend as backends

from agents.tests.own_host import another, run, within

LAB_CC = Path(__file__).parents[3] / "lab" / "cc"
TRACE = Path("/proc/testctl_cc_trace")
ROOM = 100_000
BYTES = 12_000_000
MAX_BYTES = 40 * BYTES
ACKS = 1000
DROPPED = (600, 601, 1500, 2400, 2403, 3000, 4000, 5000, 6000, 7000)
ADDRESSES = {"a": "10.0.0.1", "b": "10.0.0.2"}
MACS = {"a": "02:00:00:00:00:01", "b": "02:00:00:00:00:02"}


@contextmanager
def host(name: str) -> Iterator[int]:
    """A namespace, held by a process, with its end of a wire to the switch, which is here; yields the process."""
    with another() as pid:
        run(f"ip link add to_{name} type veth peer name eth0 address {MACS[name]} netns {pid}")
        run(f"ip link set to_{name} up")
        other = "b" if name == "a" else "a"
        with within(pid):
            run("ip link set lo up")
            run(f"ip address add {ADDRESSES[name]}/24 dev eth0")
            run("ip link set eth0 up")
            run(f"ip neigh replace {ADDRESSES[other]} lladdr {MACS[other]} dev eth0")
            run("ethtool -K eth0 tso off gso off gro off tx off")
        yield pid


def transfer(name: str, a: int, b: int, acks: Callable[[], int]) -> None:
    """Send BYTES from a to b with a congestion control, and more until it has seen ACKS; all arrive."""
    with within(b):
        server = socket.create_server((ADDRESSES["b"], 5000))
    got = []

    def receive() -> None:
        peer, _ = server.accept()
        with peer:
            got.append(sum(len(data) for data in iter(lambda: peer.recv(1 << 20), b"")))

    receiver = threading.Thread(target=receive)
    receiver.start()
    with within(a):
        sender = socket.socket()
    with server, sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        sender.bind((ADDRESSES["a"], 40000))
        sender.connect((ADDRESSES["b"], 5000))
        sent = 0
        while sent < BYTES or (acks() < ACKS and sent < MAX_BYTES):
            sender.sendall(bytes(BYTES))
            sent += BYTES
        sender.shutdown(socket.SHUT_WR)
        receiver.join()
    assert got == [sent], got


def traced(how: str, name: str, a: int, b: int) -> bytes:
    """The records of a transfer."""
    if how == "lab":
        TRACE.write_text(str(ROOM))
        transfer(name, a, b, acks=lambda: ACKS)  # virtual time merges none
        return TRACE.read_bytes()
    from root_struct_ops import count_of, recorded  # beside this script, which is run by its path

    with Registered(LAB_CC / f"tcp_{name}.c") as registered:
        records = recorded(registered, lambda so_far: transfer(name, a, b, lambda: count_of(Operation.ACK, so_far)))
    return b"".join(bytes(record) for record in records)


def main() -> None:
    how, name, file, *dropped = sys.argv[1:]
    run("ip link set lo up")
    with host("a") as a, host("b") as b:
        switch = backends.load("ebpf", {f"switch:{n}": f"to_{n}" for n in "ab"}, {MACS[n]: f"to_{n}" for n in "ab"})
        run("tc qdisc add dev to_b root tbf rate 100mbit burst 5kb limit 60kb")
        switch.apply("", "flows", f"bulk/0 tcp {ADDRESSES['a']}:40000 {ADDRESSES['b']}:5000")
        switch.apply("", "fate", f"drop data {','.join(dropped or map(str, DROPPED))} of bulk")
        Path(file).write_bytes(traced(how, name, a, b))
        switch.close()
    print("done")


if __name__ == "__main__":
    main()
