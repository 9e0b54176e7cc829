# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: one agent serves many points; what it holds does not grow.

    python root_leaks.py POINTS

Started under `unshare --net --mount`; needs veth and HTB of the running kernel.  A point is a lease with settings, a
transfer, tcp_info, a capture in every tenth, its files fetched, and the restore.  Counted after WARM points and at the
end: the agent's descriptors, threads and processes, its memory, the kernel's BPF programs, maps and links, the sockets
and qdiscs of the namespace, network namespaces, and what lies in its directories for temporary files and in /dev/shm.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from testctl_agent.daemon import agent_pb2 as pb

from agents.tests.daemon.daemons import Caller, Daemon, calling, written
from agents.tests.own_host import with_eth0

WARM = 5
CALLS = 64
SETTLE_S = 60.0
MAX_KIB_A_POINT = 4
"""Of resident memory: an allocator's noise over some hundred points, far below a leaked message a point."""
SYS_BPF = {"x86_64": 321}[platform.machine()]
NEXT_ID = {"programs": 11, "maps": 12, "links": 31}
VALUES: dict[str, int | str] = {
    "mtu": 1400, "tcp_sack": 0, "tcp_rmem": "4096 131072 6291456", "initcwnd": 20, "gro_flush": 20_000,
    "htb_rate": 10**9, "htb_buffer": 50_000, "htb_ecn_threshold": 30_000, "htb_mark": "data", "cc": "reno",
}  # fmt: skip


def run(command: str) -> str:
    return subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout


def bpf_objects(command: int) -> int:
    """How many there are in the kernel (bpf(2), BPF_*_GET_NEXT_ID)."""
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = (ctypes.c_uint32 * 4)()
    count = 0
    while libc.syscall(SYS_BPF, command, ctypes.byref(attributes), ctypes.sizeof(attributes)) == 0:
        attributes[0] = attributes[1]
        count += 1
    return count


def held(pid: int, work: Path) -> dict[str, int]:
    """What exists that a leak would add to."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(status["Threads"]),
        "children": len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()),
        "resident_kib": int(status["VmRSS"].split()[0]),
        **{f"bpf {what}": bpf_objects(command) for what, command in NEXT_ID.items()},
        "sockets": len(run("ss -Han state all exclude time-wait").splitlines()),  # those end by themselves
        "qdiscs": len(run("tc qdisc show").splitlines()),
        "namespaces": len(list(Path("/run/netns").glob("*"))),
        "in the working directory": sum(len(files) for _, _, files in os.walk(work)),
        "temporary files": len(os.listdir(work.with_name("tmp"))),
        "in /dev/shm": len(os.listdir("/dev/shm")),
    }


def fill_threads(caller: Caller) -> None:
    """So many calls at once that the service has started all of the threads that it may."""
    for call in [caller.stub.Describe.future(pb.DescribeRequest()) for _ in range(CALLS)]:
        call.result()


def point(caller: Caller, number: int) -> None:
    caller.acquire()
    caller.set(**VALUES)
    flow = {"address": "10.0.0.1", "server_port": 5000, "bytes": 100_000, "parallel": 2}
    if number % 10 == 0:
        caller.start("capture", "collector", "capture", device="eth0")
    caller.start("tcp_info", "collector", "tcp_info")
    caller.start("server", "generator", "tgen", side="server", **flow)
    caller.start("client", "generator", "tgen", side="client", **flow)
    for task in ("client", "server"):
        status = caller.call("Wait", pb.WaitRequest(task=task, timeout_ns=20 * 10**9))
        assert status.ended, task
        assert status.ok, status.error
        assert json.loads(status.result)["connections"], task
    caller.call("Stop", pb.StopRequest(task="tcp_info"))
    assert sum(len(chunk.data) for chunk in caller.call("Fetch", pb.FetchRequest(task="tcp_info", file="tcp_info.bin")))
    if number % 10 == 0:
        assert caller.call("Stop", pb.StopRequest(task="capture")).ok
    caller.call("Release")
    caller.token = ""


def grown(before: Mapping[str, int], now: Callable[[], Mapping[str, int]], points: int) -> dict[str, tuple[int, int]]:
    """What is more than before, once what others of this machine do has had time to end."""
    until = time.monotonic() + SETTLE_S
    others = dict.fromkeys((f"bpf {what}" for what in NEXT_ID), points // 2)  # a leak is twice as many
    allowed = {"resident_kib": max(MAX_KIB_A_POINT * points, 10_000)} | others
    while True:
        after = now()
        more = {what: (before[what], n) for what, n in after.items() if n > before[what] + allowed.get(what, 0)}
        if not more or time.monotonic() > until:
            print(f"after {points} points: {after}")
            return more
        time.sleep(1)


def main() -> None:
    points = int(sys.argv[1])
    with_eth0()
    for where in ("/dev/shm", "/run/netns"):
        Path(where).mkdir(exist_ok=True)
        run(f"mount -t tmpfs mine {where}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = written(folder, devices={"alpha": "eth0"}, lease=True)
        (folder / "tmp").mkdir()
        daemon = Daemon(path, before=["setpriv", "--pdeathsig=KILL"], env={"TMPDIR": str(folder / "tmp")})
        with calling(f"unix:{folder}/alpha.sock") as caller:
            for number in range(WARM):
                point(caller, number)
            fill_threads(caller)
            before = held(daemon.pid, folder / "work")
            print(f"after {WARM} points: {before}")
            began = time.monotonic()
            for number in range(WARM, points):
                point(caller, number)
            took_s = time.monotonic() - began
            more = grown(before, lambda: held(daemon.pid, folder / "work"), points - WARM)
            assert not more, f"grew over {points} points: {more}"
        assert daemon.end() == 0, daemon.log
    print(f"{points} points in {took_s:.0f} s: nothing grew")


if __name__ == "__main__":
    main()
