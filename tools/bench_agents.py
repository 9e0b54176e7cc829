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
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from simulated_rack import inventory, network
from simulated_rack.plan import Node, SimulatedRack, plan
from testctl.system.subprocesses import run
from testctl_agent.spec.types import Value
from testctl_agent.system import namespace
from testctl_agent.wire import messages
from testctl_rack.inventory_file import read_rack
from testctl_rack.leased_agents import CALLS, RemoteAgents
from testctl_rack.placement import Placement

HOSTS, ROUNDS, POINTS, SHARE = 8, 20, 6, 0.1
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
    namespace.mount("tmpfs", "/run/netns")
    run(["ip", "link", "set", "lo", "up"])


def _config(rack: SimulatedRack, node: Node) -> Path:
    """The file of an agent, as a deployment writes it."""
    keys, home = rack.state / "keys", rack.state / node.name
    home.mkdir()
    ports = {host.name: port for host in rack.hosts for port in host.devices.values()}
    switch = node.kind == "switch"
    config = {
        "name": node.name, "kind": node.kind, "listen": f"{node.management}:7400",
        "devices": {f"{node.name}:{name}": port for name, port in ports.items()}
        if switch else {node.name: next(iter(node.devices))},
        "workdir": str(home / "work"), "journal": str(home / "journal.jsonl"),
        "tls": {
            "authority": str(keys / "ca.crt"), "certificate": str(keys / f"{node.name}.crt"),
            "key": str(keys / f"{node.name}.key"), "controllers": ["controller"],
        },
    }  # fmt: skip
    if switch:
        config |= {"backend": "ebpf", "forwarding": {host.mac: ports[host.name] for host in rack.hosts}}
    path = home / "agent.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


@contextmanager
def daemons(state: Path, hosts: int) -> Iterator[tuple[SimulatedRack, dict[str, int]]]:
    """A rack whose agents have printed "ready"; and the process of each."""
    rack = plan(state, hosts)
    state.mkdir()
    network.up(rack)
    inventory.write(rack)
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for node in rack.nodes:
            argv = ["ip", "netns", "exec", node.namespace, sys.executable, "-m", "testctl_agent", "serve"]
            argv += ["--config", str(_config(rack, node))]
            with (state / f"{node.name}.log").open("wb") as log:
                started[node.name] = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log)
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
    settings = {n: [messages.Setting(entity=n, parameter=p, value=v) for p, v in TUPLES.items()] for n in names}
    begun = time.perf_counter()
    agents.all("Apply", {name: messages.ApplyRequest(settings=mine) for name, mine in settings.items()})
    applied = time.perf_counter()
    agents.all("Restore", {name: messages.RestoreRequest() for name in names})
    return applied - begun, time.perf_counter() - applied


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def own_share(pids: Iterable[int]) -> Iterator[bool]:
    """SHARE of a processor for each process and no more, as if it had a slow machine of its own; False where
    there is no cgroup for that.  (Else it is processors that agents of one machine wait for.)"""
    period, quota = 10_000, int(10_000 * SHARE)
    first, second = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    v1 = (first / "cpu.cfs_quota_us").exists()
    parent = first if v1 else second
    asked = second / "cgroup.subtree_control"
    v2 = not v1 and asked.exists() and "cpu" in asked.read_text(encoding="utf-8").split()
    files = {"cpu.cfs_period_us": period, "cpu.cfs_quota_us": quota} if v1 else {"cpu.max": f"{quota} {period}"}
    made = {pid: parent / f"testctl-bench-{pid}" for pid in pids} if v1 or v2 else {}
    try:
        for pid, group in made.items():
            group.mkdir()
            for name, value in {**files, "cgroup.procs": pid}.items():
                (group / name).write_text(f"{value}\n", encoding="utf-8")
        yield bool(made)
    finally:
        for pid, group in made.items():
            (parent / "cgroup.procs").write_text(f"{pid}\n", encoding="utf-8")
            group.rmdir()


def _compare(agents: RemoteAgents, names: Sequence[str], how: str) -> None:
    """Print Apply on one of the agents, on all of them, and the ratio; in turns."""
    took: dict[int, list[float]] = {1: [], len(names): []}
    _timed(agents, names)
    for _ in range(ROUNDS):
        for count, each in took.items():
            each.append(_timed(agents, names[:count])[0])
    one, all_ = took.values()
    for count, each in took.items():
        print(f"apply, {how}: {len(TUPLES)} tuples on {count}: best {min(each) * 1e3:6.1f} ms, "
              f"median {statistics.median(each) * 1e3:6.1f} ms")  # fmt: skip
    print(f"apply, {how}: {len(names)} agents over one: best {min(all_) / min(one):.2f}, "
          f"median {statistics.median(all_) / statistics.median(one):.2f}")  # fmt: skip


def apply(state: Path) -> None:
    """Apply of the same tuples on one agent and on all: with a share of a processor each, and with what there is."""
    with daemons(state, HOSTS) as (rack, pids):
        found = read_rack(state / "inventory")
        names = [node.name for node in rack.hosts]
        placement = Placement({name: found.machines[name] for name in names})
        with RemoteAgents(found, placement, "bench") as agents:
            with own_share([pids[name] for name in names]) as limited:
                if limited:
                    _compare(agents, names, f"{SHARE:.0%} of a processor each")
            before = [sum(_cpu_s(pids[name]) for name in names), time.process_time()]
            _compare(agents, names, f"{os.cpu_count()} processors for all")
            after = [sum(_cpu_s(pids[name]) for name in names), time.process_time()]
    rounds = HOSTS + (HOSTS + 1) * ROUNDS
    agent, controller = ((then - first) / rounds * 1e3 for first, then in zip(before, after, strict=True))
    print(f"apply and restore: {agent:.1f} ms of a processor in the agent, {controller:.1f} ms in the controller")


def spent(calls: str) -> dict[str, float]:
    """Seconds by call, from the lines of TESTCTL_CALLS: where several are under way the first of them counts, and
    where none is, the one that is waited for ("before Start")."""
    found: defaultdict[str, float] = defaultdict(float)
    under_way: list[str] = []
    last_ns = 0
    for line in calls.splitlines():
        at, name, method, what = line.split()
        between = under_way[0].split()[1] if under_way else f"before {method}"
        if last_ns and between != "before Acquire":
            found[between] += (int(at) - last_ns) / 1e9
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
    for what, seconds in sorted(said.items(), key=lambda one: -one[1]):
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
