# SPDX-License-Identifier: Apache-2.0
"""Agents of a rack of namespaces, as daemons behind mutual TLS and leases (root): one point's Apply on eight of
them beside one, and whole points an hour with where their time goes.  In network and mount namespaces of its own.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from testctl.rack import inventory, network
from testctl.rack.plan import Rack, Room, plan
from testctl.run import run
from testctl.testbeds.placement import Placement
from testctl.testbeds.rack import read_rack
from testctl.testbeds.remote import CALLS, RemoteAgents
from testctl_agent import namespace
from testctl_agent.spec.types import Value
from testctl_agent.wire import agent_pb2 as pb
from testctl_agent.wire.values import to_wire

HOSTS, ROUNDS, POINTS = 8, 15, 6
TUPLES: dict[str, Value] = {
    "cc": "reno", "mtu": 1400, "tso": True, "gro": False, "initcwnd": 20, "gro_flush": 20_000,
    "htb_rate": 10**9, "htb_burst": 20_000, "htb_buffer": 500_000,
    "tcp_sack": 0, "tcp_dsack": 0, "tcp_ecn": 1, "tcp_timestamps": 0, "tcp_window_scaling": 0, "tcp_autocorking": 0,
    "tcp_slow_start_after_idle": 0, "tcp_moderate_rcvbuf": 0, "tcp_reordering": 5, "tcp_syn_retries": 4,
    "tcp_rmem": "4096 65536 1048576",
}  # fmt: skip
PLAN = """
about: a flow of a few kB, so that a point is its overhead alone
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, cc, reno]
  - [hosts, tcp_sack, 1]
  - [all, mtu, 1400]
  - [hosts, capture, on]
  - [bulk, bytes, 8kB]
repeat: {points}
"""


def _isolated() -> None:
    """Namespaces that end with this process, and with them all that it makes."""
    namespace.unshare(namespace.CLONE_NEWNET)
    namespace.private_mounts()
    for kind, where in (("tmpfs", "/run/netns"), ("sysfs", "/sys"), ("bpf", "/sys/fs/bpf")):
        namespace.mount(kind, where)
    run(["ip", "link", "set", "lo", "up"])


def _config(rack: Rack, room: Room) -> Path:
    """The file of an agent, as a deployment writes it."""
    keys, home = rack.state / "keys", rack.state / room.name
    home.mkdir()
    ports = {host.name: port for host in rack.hosts for port in host.devices.values()}
    switch = room.kind == "switch"
    config = {
        "name": room.name, "kind": room.kind, "listen": f"{room.management}:7400",
        "devices": {f"{room.name}:{name}": port for name, port in ports.items()}
        if switch else {room.name: next(iter(room.devices))},
        "workdir": str(home / "work"), "journal": str(home / "journal.jsonl"),
        "tls": {
            "authority": str(keys / "ca.crt"), "certificate": str(keys / f"{room.name}.crt"),
            "key": str(keys / f"{room.name}.key"), "controllers": ["controller"],
        },
    }  # fmt: skip
    if switch:
        config |= {"backend": "ebpf", "forwarding": {host.mac: ports[host.name] for host in rack.hosts}}
    path = home / "agent.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


@contextmanager
def daemons(state: Path, hosts: int) -> Iterator[tuple[Rack, dict[str, int]]]:
    """A rack whose agents have said "ready"; and the process of each."""
    rack = plan(state, hosts)
    state.mkdir()
    network.up(rack)
    inventory.write(rack)
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for room in rack.rooms:
            inside = ["nsenter", f"--net=/run/netns/{room.namespace}"]
            # An agent reads the /sys of its own namespace, which only a mount made there shows.
            inside += ["unshare", "--mount", "sh", "-c", 'mount -t sysfs sysfs /sys; mount -t bpf bpf /sys/fs/bpf; exec "$@"']
            argv = [*inside, "sh", sys.executable, "-m", "testctl_agent", "serve", "--config", str(_config(rack, room))]
            with (state / f"{room.name}.log").open("wb") as log:
                started[room.name] = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log)
        for name, process in started.items():
            if process.stdout is None or process.stdout.readline() != b"ready\n":
                raise SystemExit((state / f"{name}.log").read_text(encoding="utf-8"))
        yield rack, {name: process.pid for name, process in started.items()}
    finally:
        for process in started.values():
            process.send_signal(signal.SIGTERM)
        for process in started.values():
            process.communicate(timeout=60)
        network.down()


def _timed(agents: RemoteAgents, names: Sequence[str]) -> tuple[float, float]:
    """Seconds of Apply on these agents at once, and of Restore."""
    settings = {n: [pb.Setting(entity=n, parameter=p, value=to_wire(v)) for p, v in TUPLES.items()] for n in names}
    begun = time.perf_counter()
    agents.all("Apply", {name: pb.ApplyRequest(settings=mine) for name, mine in settings.items()})
    applied = time.perf_counter()
    agents.all("Restore", {name: pb.RestoreRequest() for name in names})
    return applied - begun, time.perf_counter() - applied


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def apply(state: Path) -> None:
    """Apply of the same tuples on one agent and on all, in turns."""
    with daemons(state, HOSTS) as (rack, pids):
        found = read_rack(state / "inventory")
        stations = {room.name: found.stations[room.name] for room in rack.hosts}
        with RemoteAgents(found, Placement(stations), "bench") as agents:
            names, took = list(stations), {1: [], HOSTS: []}  # type: tuple[list[str], dict[int, list[float]]]
            _timed(agents, names)
            cpu = sum(_cpu_s(pids[name]) for name in names)
            for _ in range(ROUNDS):
                for count, each in took.items():
                    each.append(_timed(agents, names[:count])[0])
            cpu = sum(_cpu_s(pids[name]) for name in names) - cpu
    for count, each in took.items():
        print(f"apply, {len(TUPLES)} tuples on {count} agents: best {min(each) * 1e3:6.1f} ms, "
              f"median {statistics.median(each) * 1e3:6.1f} ms")  # fmt: skip
    best, middle = (how(took[HOSTS]) / how(took[1]) for how in (min, statistics.median))
    print(f"apply, {HOSTS} agents over one: best {best:.2f}, median {middle:.2f} (all on {os.cpu_count()} processors; "
          f"an agent's Apply and Restore take {cpu / (ROUNDS * (HOSTS + 1)) * 1e3:.1f} ms of one)")  # fmt: skip


def spent(calls: str) -> Counter[str]:
    """Seconds by call, from the lines of TESTCTL_CALLS: where several are under way the first of them counts, and
    where none is, the one that is waited for ("before Start")."""
    found: Counter[str] = Counter()
    under_way: list[str] = []
    last_ns = 0
    for line in calls.splitlines():
        at, name, method, what = line.split()
        between = under_way[0].split()[1] if under_way else f"before {method}"
        found[between] += (int(at) - last_ns) / 1e9 if last_ns and between != "before Acquire" else 0
        last_ns = int(at)
        if what == "begins":
            under_way.append(f"{name} {method}")
        elif f"{name} {method}" in under_way:
            under_way.remove(f"{name} {method}")
    return found


def points(state: Path) -> None:
    """`testctl run` of small points on two hosts and a switch."""
    with daemons(state, 2):
        asked, calls, out = state / "plan.yaml", state / "calls", state / "run"
        asked.write_text(PLAN.format(points=POINTS), encoding="utf-8")
        argv = [sys.executable, "-m", "testctl.cli.main", "run", str(asked), "--testbed", str(state / "inventory")]
        begun = time.perf_counter()
        done = subprocess.run([*argv, "--out", str(out)], capture_output=True, text=True, check=False, cwd=state,
                              env=os.environ | {CALLS: str(calls)})  # fmt: skip
        wall_s = time.perf_counter() - begun
    found = json.loads((out / "summary.json").read_text(encoding="utf-8"))["points"] if out.exists() else []
    if done.returncode != 0 or any(point["verdict"] != "pass" for point in found):
        raise SystemExit(done.stdout + done.stderr)
    each = [json.loads(path.read_text(encoding="utf-8"))["wall_s"] for path in out.glob("points/*/verdict.json")]
    said = spent(calls.read_text(encoding="utf-8"))
    called_s, point_s = sum(said.values()) / len(found), statistics.mean(each)
    print(f"points: {3600 * len(found) / wall_s:.0f} an hour, with the command's start and its report; without "
          f"{3600 / point_s:.0f} ({point_s:.2f} s each)")  # fmt: skip
    for what, seconds in said.most_common():
        if seconds / len(found) >= 0.01:
            print(f"point, {what:14} {seconds / len(found):6.2f} s")
    print(f"point, {'analysis':14} {point_s - called_s:6.2f} s (and all else between two points)")
    print(f"run,   {'start, report':14} {wall_s - sum(each):6.2f} s (once)")


def agents(where: Path) -> None:
    """In a process of its own, whose namespaces go with it."""
    subprocess.run([sys.executable, __file__, str(where)], check=True)


if __name__ == "__main__":
    _isolated()
    for bench in (apply, points):
        if sys.argv[2:] in ([], [bench.__name__]):
            bench(Path(sys.argv[1]) / bench.__name__)
