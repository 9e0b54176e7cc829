# SPDX-License-Identifier: Apache-2.0
"""Runs as root in a network namespace of its own: the eBPF switch forwards, dies, and leaves nothing.

Started under `unshare --net --mount`.  With the argument "open" it is the switch that will be killed.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time

import pytest
from testctl_agent.network import qdisc
from testctl_agent.spec.errors import ApplyError, TestbedError
from testctl_agent.switch import backend as backends
from testctl_agent.switch.backend import Backend

MACS = {"a": "02:00:00:00:00:01", "b": "02:00:00:00:00:02"}
PORTS = {f"switch:{name}": f"to_{name}" for name in MACS}


def state() -> dict[str, list[tuple[str, int]]]:
    return {device: [(q.kind, q.handle) for q in qdisc.qdiscs(device)] for device in PORTS.values()}


def switch() -> Backend:
    return backends.load("ebpf", PORTS, {mac: f"to_{name}" for name, mac in MACS.items()})


def sockets() -> dict[str, socket.socket]:
    found = {}
    for name in MACS:
        found[name] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
        found[name].bind((f"end_{name}", 0x88B5))
        found[name].settimeout(120)
    return found


def forwards(ends: dict[str, socket.socket]) -> None:
    for there, back in (("b", "a"), ("a", "b")):
        frame = bytes.fromhex((MACS[there] + MACS[back]).replace(":", "")) + b"\x88\xb5" + there.encode() * 50
        ends[back].send(frame)
        assert ends[there].recv(2000) == frame


def silent(ends: dict[str, socket.socket]) -> None:
    ends["a"].send(bytes.fromhex((MACS["b"] + MACS["a"]).replace(":", "")) + b"\x88\xb5" + bytes(50))
    ends["b"].settimeout(0.2)
    with pytest.raises(TimeoutError):
        ends["b"].recv(2000)
    ends["b"].settimeout(120)


def full(open_switch: Backend) -> None:
    """More rows than a table has: refused, and what was there stays."""
    open_switch.apply("", "flows", "bulk/0 tcp 10.0.0.1:1 10.0.0.2:2")
    open_switch.apply("", "fate", "drop data 7 of bulk")
    many = "; ".join(f"drop data {nth} of bulk" for nth in range(1, 600, 2))
    with pytest.raises(ApplyError, match="switch, fate: want at most 256 rows of table fate; got 300"):
        open_switch.apply("", "fate", many)
    assert open_switch.read("", "fate") == "drop data 7 of bulk"
    with pytest.raises(ApplyError, match="switch, fate: want one of its flows"):
        open_switch.apply("", "fate", "drop data 1 of nobody")
    open_switch.apply("", "fate", "none")


def narrow(ends: dict[str, socket.socket]) -> None:
    """Loaded for a point: it forwards, takes the point's settings, and refuses what it was loaded without."""
    flows = "bulk/0 tcp 10.0.0.1:1 10.0.0.2:2"
    point = {("", "flows"): flows, ("to_a", "ecn_threshold"): 30_000}
    less = backends.load("ebpf", PORTS, {mac: f"to_{name}" for name, mac in MACS.items()}, point)
    forwards(ends)
    for (port, what), value in point.items():
        less.apply(port, what, value)
        assert less.read(port, what) == value
    with pytest.raises(ApplyError, match=r"switch, fate: table .*: the program was loaded without it"):
        less.apply("", "fate", "drop data 7 of bulk")
    if not less.unavailable("rate"):
        with pytest.raises(ApplyError, match=r"port to_a, rate: .*loaded without links that change"):
            less.apply("to_a", "rate", "1mbit; 1s 2mbit")
    forwards(ends)
    for port, what in reversed(point):
        less.apply(port, what, backends.UNSET[what])
    less.close()


def main() -> None:
    if sys.argv[1:] == ["open"]:
        switch()
        print("open", flush=True)
        time.sleep(600)
    for name, mac in MACS.items():
        words = f"ip link add name to_{name} type veth peer name end_{name} address {mac}"
        subprocess.run(words.split(), check=True)
        for device in (f"to_{name}", f"end_{name}"):
            subprocess.run(["ip", "link", "set", "dev", device, "up"], check=True)
    before, ends = state(), sockets()
    with subprocess.Popen([sys.executable, __file__, "open"], stdout=subprocess.PIPE, text=True) as dying:
        assert dying.stdout is not None
        assert dying.stdout.readline() == "open\n"
        forwards(ends)
        dying.send_signal(signal.SIGKILL)
    assert state() != before
    forwards(ends)  # the program outlives its agent
    after = switch()
    forwards(ends)
    if why := after.unavailable("rate"):
        with pytest.raises(ApplyError, match="port to_a, rate: want 1000; this kernel has no fq"):
            after.apply("to_a", "rate", 1000)
        print(why)
    with pytest.raises(ApplyError, match="port to_c, framing: want one of the ports to_a, to_b"):
        after.apply("to_c", "framing", 24)
    full(after)
    after.close()
    assert state() == before
    silent(ends)
    narrow(ends)
    assert state() == before
    with pytest.raises(TestbedError, match="device to_c: not in this network namespace"):
        backends.load("ebpf", {"switch:c": "to_c"}, {})
    qdisc.put_qdisc("to_b", "clsact", qdisc.CLSACT_HANDLE, qdisc.CLSACT)
    theirs = state()
    with pytest.raises(TestbedError, match="device to_b: want no clsact or ingress qdisc; got one"):
        switch()
    assert state() == theirs
    print("all is as before")


if __name__ == "__main__":
    main()
