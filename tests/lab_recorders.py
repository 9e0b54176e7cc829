# SPDX-License-Identifier: Apache-2.0
"""In the lab: the kernel's own recorders beside tcpdump and `tgen sample`, each as the agents start it.

Two namespaces, joined by a veth with TSO and GRO, and the loopback; TCP over IPv4 and IPv6, UDP, ARP and ICMPv6.
TESTCTL_OUT names a directory; prints a line of JSON, {name: result or error}.
"""

import ctypes
import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from testctl_agent.collect import capture, tcp_info
from testctl_agent.spec.errors import TestbedError
from testctl_agent.tasks.lab_recorder import LabRecorder
from testctl_agent.tasks.task import Task

OUT = Path(os.environ["TESTCTL_OUT"])
CLONE_NEWNET = 0x40000000
MS = 10**6
CALM_S = 30
"""Until neighbours are known and no protocol sends anything by itself."""
INTERVAL_NS = 7 * MS
SAMPLES = 5
PORTS = (5001, 5002, 6001)
CAPTURES = {
    "cut": {"device": "eth0", "snap_bytes": 100},
    "short": {"device": "eth0", "snap_bytes": 60},
    "whole": {"device": "eth0", "snap_bytes": 262144, "packets": "all"},
    "loopback": {"device": "lo", "packets": "all"},
}
libc = ctypes.CDLL(None, use_errno=True)


def build() -> None:
    for words in (
        "ip link set lo up",
        "ip netns add far",
        "ip link add eth0 type veth peer name eth0 netns far",
        "ip address add 10.0.0.1/24 dev eth0",
        "ip address add fd00::1/64 dev eth0 nodad",
        "ip link set eth0 up",
        "ip -n far link set lo up",
        "ip -n far address add 10.0.0.2/24 dev eth0",
        "ip -n far address add fd00::2/64 dev eth0 nodad",
        "ip -n far link set eth0 up",
        "ethtool -K eth0 gro on",
    ):
        subprocess.run(words.split(), check=True)


def far_socket(family: int, kind: int) -> socket.socket:
    """A socket of the other namespace."""
    with open("/proc/self/ns/net", "rb") as home, open("/run/netns/far", "rb") as far:
        assert libc.setns(far.fileno(), CLONE_NEWNET) == 0
        made = socket.socket(family, kind)
        assert libc.setns(home.fileno(), CLONE_NEWNET) == 0
    return made


def connection(server: socket.socket, client: socket.socket, address: str, port: int) -> tuple[socket.socket, ...]:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    server.listen()
    client.connect((address, port))
    there, _ = server.accept()
    return client, there, server


def exchange(near: socket.socket, far: socket.socket, count: int) -> None:
    """So many bytes each way."""
    for source, sink in ((near, far), (far, near)):
        sent = got = 0
        while got < count:
            sent += source.send(bytes(min(count - sent, 100_000))) if sent < count and sent - got < 200_000 else 0
            got += len(sink.recv(1 << 20))


def traffic() -> list[tuple[socket.socket, ...]]:
    """The connections, which stay open."""
    inet, inet6, tcp, udp = socket.AF_INET, socket.AF_INET6, socket.SOCK_STREAM, socket.SOCK_DGRAM
    made = [
        connection(far_socket(inet, tcp), socket.socket(inet, tcp), "10.0.0.2", PORTS[0]),
        connection(socket.socket(inet, tcp), far_socket(inet, tcp), "10.0.0.1", PORTS[1]),
        connection(far_socket(inet6, tcp), socket.socket(inet6, tcp), "fd00::2", PORTS[0]),
        connection(socket.socket(inet, tcp), socket.socket(inet, tcp), "127.0.0.1", PORTS[2]),
    ]
    for number, (near, far, *_) in enumerate(made):
        exchange(near, far, 300_000 + number)
    with socket.socket(inet, udp) as sender:
        sender.sendto(bytes(3000), ("10.0.0.2", 9))
        sender.sendto(b"", ("127.0.0.1", 9))
    return made


def both(name: str, module: Any, options: dict[str, Any]) -> dict[str, Task]:
    """The kernel's recorder and the program's task of these options, each with a directory of its own."""
    found = {}
    own = module.LAB_FILE
    for which, there in (("kernel", own), ("program", Path("/nonesuch"))):
        where = OUT / f"{name}-{which}"
        where.mkdir()
        module.LAB_FILE = there
        found[f"{name}-{which}"] = module.task(options, where)
    module.LAB_FILE = own
    return found


def refused(task: Task) -> str:
    """The words of a task that can't be started, or fails."""
    try:
        task.start()
        task.stop()
        task.result()
    except TestbedError as error:
        return str(error)
    return "nothing"


def errors() -> dict[str, str]:
    def recorder(words: str, control: Path = capture.LAB_FILE, output: str = "file") -> LabRecorder:
        return LabRecorder("who", control, words.split(" "), OUT, output, dict)

    full = capture.task({"device": "lo"}, OUT)
    assert isinstance(full, LabRecorder)
    full.output = "/dev/full"
    twice = recorder("lo 100 all")
    twice.start()
    try:
        os.write(twice._fd, b"lo 100 all /tmp/other")
        again = "nothing"
    except OSError as error:
        again = os.strerror(error.errno or 0)
    twice.stop()
    samples = tcp_info.LAB_FILE
    return {
        "no device": refused(capture.task({"device": "nonesuch"}, OUT)),
        "no directory": refused(capture.task({"device": "lo"}, OUT / "nonesuch")),
        "full": refused(full),
        "twice": again,
        "not ended": refused(LabRecorder("who", capture.LAB_FILE, (), OUT, "file", dict)),
        "words": refused(recorder("lo 100")),
        "which": refused(recorder("lo 100 some")),
        "bytes": refused(recorder("lo 262145 all")),
        "interval": refused(recorder("0 0 999 inet -", samples)),
        "ports": refused(recorder("0 0 1000000 inet 7-5", samples)),
        "family": refused(recorder("0 0 1000000 unix -", samples)),
    }


def main() -> None:
    build()
    time.sleep(CALM_S)
    running: dict[str, Task] = {}
    for name, options in CAPTURES.items():
        running |= both(name, capture, options)
    for task in running.values():
        task.start()
    connections = traffic()
    time.sleep(CALM_S)
    start_ns = (time.time_ns() // 10**9 + 1) * 10**9 + 333_333
    when = {"interval_ns": INTERVAL_NS, "start_ns": start_ns, "end_ns": start_ns + (SAMPLES - 1) * INTERVAL_NS}
    samplers: dict[str, Task] = {}
    for name, options in {
        "all": {}, "some": {"ports": f"{PORTS[1]}-{PORTS[1] + 7},{PORTS[2]}"}, "inet6": {"family": "inet6"},
    }.items():  # fmt: skip
        samplers |= both(name, tcp_info, {**when, **options})
        when["start_ns"] += 100_000
        when["end_ns"] += 100_000
    for task in samplers.values():
        task.start()
    time.sleep(2)
    results = {}
    for name, task in [*samplers.items(), *reversed(running.items())]:
        task.stop()
        try:
            results[name] = task.result()
        except TestbedError as error:
            results[name] = str(error)
    del connections
    print(json.dumps({"results": results, "errors": errors(), "start_ns": start_ns}))


main()
