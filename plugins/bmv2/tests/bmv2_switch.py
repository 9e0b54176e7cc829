# SPDX-License-Identifier: Apache-2.0
"""BMv2 as the switch between two hosts, in namespaces of the running kernel.

Run as `unshare --net --mount python bmv2_switch.py`: this namespace is the switch's, the hosts are
those of two children.  Prints what was seen; fails by assertion.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from testctl_agent.network import qdisc
from testctl_agent.spec.errors import ApplyError
from testctl_bmv2 import backend as bmv2
from testctl_bmv2 import simple_switch

from agents.tests.own_host import another, run

DEVICES = ("left", "right")
STATIONS = {"02:00:00:00:00:01": "left", "02:00:00:00:00:02": "right"}
BYTES = 65536
SINK = f"""
import socket
server = socket.create_server(("10.0.0.2", 5201))
print("ready", flush=True)
while True:
    peer, _ = server.accept()
    got = 0
    while got < {BYTES}:
        got += len(peer.recv(1 << 16))
    peer.sendall(str(got).encode())
    peer.close()
"""
"""Ends the connection first, so that the source's port is free at once."""
SOURCE = f"""
import socket
sending = socket.create_connection(("10.0.0.2", 5201), 30, ("10.0.0.1", 40000))
sending.sendall(bytes({BYTES}))
print(sending.makefile().read())
"""
FLOW = "bulk/0 tcp 10.0.0.1:40000 10.0.0.2:5201"


@contextmanager
def host(number: int, device: str) -> Iterator[list[str]]:
    """A namespace with an address behind a device of the switch; what enters it."""
    with another() as pid:
        run(f"ip link add {device} type veth peer name eth0 netns {pid}")
        run(f"ip link set {device} up")
        enter = ["nsenter", f"--net=/proc/{pid}/ns/net"]
        for command in (
            f"ip link set eth0 address 02:00:00:00:00:0{number}",
            f"ip addr add 10.0.0.{number}/24 dev eth0",
            "ip link set eth0 up",
            f"ip neigh add 10.0.0.{3 - number} lladdr 02:00:00:00:00:0{3 - number} dev eth0",
            "ethtool -K eth0 tx off tso off gso off gro off",
        ):
            subprocess.run([*enter, *command.split()], check=True, stdout=subprocess.DEVNULL)
        yield enter


def transfer(source: list[str]) -> int:
    """Send through the switch; the bytes that came."""
    done = subprocess.run(
        [*source, sys.executable, "-c", SOURCE], capture_output=True, text=True, check=True, timeout=300
    )
    return int(done.stdout)


def state() -> list[tuple[str, str, int]]:
    return [(device, q.kind, q.handle) for device in DEVICES for q in qdisc.qdiscs(device)]


def check_traffic(switch: bmv2.Bmv2Backend, source: list[str]) -> None:
    assert transfer(source) == BYTES
    switch.apply("", "flows", FLOW)
    switch.apply("", "fate", "drop data 1-4 of bulk, first")
    assert (switch.read("", "flows"), switch.read("", "fate")) == (FLOW, "drop data 1-4 of bulk, first")
    assert transfer(source) == BYTES
    (dropped,) = switch.hits()
    assert dropped.packets == 4, dropped
    print("dropped", dropped)
    with pytest.raises(ApplyError, match=r"switch, fate: want one of its flows \(bulk\); got other"):
        switch.apply("", "fate", "drop data 1 of other")
    switch.apply("", "fate", "none")


def check_ports(switch: bmv2.Bmv2Backend, source: list[str]) -> None:
    asked = {"rate": 50_000_000, "buffer": 100_000, "ecn_threshold": 30_000, "framing": 24}
    for what, value in asked.items():
        if not switch.unavailable(what):
            switch.apply("right", what, value)
            assert switch.read("right", what) == value
    run("ip link set right mtu 1400")
    assert switch.read("right", "ecn_threshold") == "20 packets"
    run("ip link set right mtu 1500")
    assert transfer(source) == BYTES
    for what in asked:
        if not switch.unavailable(what):
            switch.apply("right", what, 0 if what == "framing" else "none")
    with pytest.raises(ApplyError, match="port up, rate: want one of the ports left, right"):
        switch.read("up", "rate")
    print("rate", switch.unavailable("rate") or "can be had", "; delay", switch.unavailable("delay") or "can be had")


def check_crash() -> None:
    """An agent that dies takes BMv2 with it; the next takes its filters away."""
    child = os.fork()
    if not child:
        bmv2.open_backend(DEVICES, STATIONS)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert any(kind == "clsact" for _, kind, _ in state())


def main() -> None:
    run("ip link set lo up")
    with host(1, "left") as source, host(2, "right") as sink:
        serving = subprocess.Popen([*sink, sys.executable, "-c", SINK], stdout=subprocess.PIPE)
        try:
            assert serving.stdout is not None
            assert serving.stdout.readline() == b"ready\n"
            check(source)
        finally:
            serving.kill()
    print("all is as before")


def check(source: list[str]) -> None:
    before = state()
    check_crash()
    switch = bmv2.open_backend(DEVICES, STATIONS)
    check_traffic(switch, source)
    check_ports(switch, source)
    for name, said in switch.describe().items():
        print(f"{name}: {said}")
    os.kill(switch._switch.process.pid, 9)
    os.waitid(os.P_PID, switch._switch.process.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ApplyError, match=r"port left, rate: simple_switch_grpc: it ended \(exit -9\)"):
        switch.read("left", "rate")
    switch.close()
    assert state() == before, state()
    assert not simple_switch.run_directory().exists()
    bmv2.open_backend(DEVICES, STATIONS).close()
    assert state() == before, state()


if __name__ == "__main__":
    main()
