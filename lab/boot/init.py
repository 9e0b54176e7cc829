# SPDX-License-Identifier: Apache-2.0
"""The first process of a lab: namespaces, an agent in each, one point, power off.

Started by the lab's kernel with TESTCTL_LAB naming a JSON file: {"workdir", "outcome",
"t0_ns", "seed", "traffic" (a file touched just before the traffic), "mode": "point" or
"shell", "point": …}.  Agents are forked from this
process, which has loaded everything, because starting Python is the slow part.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from testctl.run import interact, run
from testctl.testbeds import network, point
from testctl_agent.engine.assemble import AgentConfig, assemble
from testctl_agent.engine.server import serve
from testctl_agent.spec.errors import TestctlError

RUN = Path("/run/testctl")
SEED = Path("/sys/module/testctl_random/parameters/seed")
CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_REC_PRIVATE = 0x4000 | (1 << 18)
RB_POWER_OFF = 0x4321FEDC

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise OSError when a call of the C library failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(kind: str, where: str) -> None:
    Path(where).mkdir(parents=True, exist_ok=True)
    check(libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None), f"mount {kind} at {where}")


def prepare() -> None:
    """File systems, the loopback, and every congestion control allowed in every namespace."""
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    os.environ["TMPDIR"] = "/run/tmp"
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("bpf", "/run/bpf")):
        mount(kind, where)
    RUN.mkdir()
    Path("/run/tmp").mkdir()
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii")
    Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").write_text(available, encoding="ascii")
    for limit in ("rmem_max", "wmem_max"):
        Path(f"/proc/sys/net/core/{limit}").write_text(str(1 << 30), encoding="ascii")


def enter(namespace: str) -> None:
    """Move this process into a network namespace, with the /sys of that namespace."""
    with open(f"/run/netns/{namespace}", "rb") as file:
        check(libc.setns(file.fileno(), CLONE_NEWNET), f"setns {namespace}")
    check(libc.unshare(CLONE_NEWNS), "unshare")
    check(libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None), "private mounts")
    mount("sysfs", "/sys")


def agent(config: AgentConfig) -> int:
    """Fork an agent; returns the end of a pipe that is closed once it listens."""
    ready, tell = os.pipe()
    if os.fork() == 0:
        try:
            os.close(ready)
            enter(config.name)
            server, _service = serve(assemble(config), f"unix:{RUN}/{config.name}.sock")
            os.write(tell, b"1")
            os.close(tell)
            server.wait_for_termination()
        except BaseException:  # noqa: BLE001 -- a forked child must not return into its parent's code
            traceback.print_exc()
        os._exit(1)
    os.close(tell)
    return ready


def agents(wiring: network.Wiring, workdir: Path, point: dict[str, Any]) -> dict[str, str]:
    """Every entity's agent, listening; name → address."""
    waiting = {}
    notes = {"kernel": point["kernel"]}
    for name in (*wiring.hosts, *wiring.switches):
        is_host = name in wiring.hosts
        devices = {name: network.HOST_DEVICE} if is_host else wiring.ports(name)
        config = AgentConfig(
            name,
            "host" if is_host else "switch",
            devices,
            workdir / name,
            RUN / f"{name}.journal",
            point["backend"],
            notes,
        )
        waiting[name] = agent(config)
    for name, ready in waiting.items():
        if not os.read(ready, 1):
            raise TestctlError(f"agent {name} ended before it listened (its words are above)")
        os.close(ready)
    return {name: f"unix:{RUN}/{name}.sock" for name in waiting}


def run_point(spec: dict[str, Any], addresses: dict[str, str]) -> dict[str, Any]:
    """The outcome of the lab's one point, whatever happened."""

    def before_traffic() -> None:
        SEED.write_text(str(spec["seed"]), encoding="ascii")
        Path(spec["traffic"]).touch()

    runner = point.PointRun(spec["point"], point.Agents(addresses), t0_ns=spec["t0_ns"], before_traffic=before_traffic)
    try:
        return runner.run()
    except point.Skip as reason:
        return runner.outcome | {"skip": str(reason)}
    except TestctlError as error:
        return runner.outcome | {"error": str(error)}


def main() -> None:
    prepare()
    spec = json.loads(Path(os.environ["TESTCTL_LAB"]).read_text(encoding="utf-8"))
    topology = spec["point"]["topology"]
    wiring = network.Wiring(topology["hosts"], topology["switches"], [tuple(link) for link in topology["links"]])
    network.build(wiring, lambda argv, text: run(argv, stdin=text))
    addresses = agents(wiring, Path(spec["workdir"]), spec["point"])
    if spec["mode"] == "shell":
        interact(["/bin/bash", "--norc"], env=os.environ | {"PS1": r"lab \w# "})
        return
    point.write_outcome(run_point(spec, addresses), Path(spec["outcome"]))


def power_off() -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.sync()
    libc.reboot(RB_POWER_OFF)
    raise SystemExit("the lab did not power off")


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # noqa: BLE001 -- whatever it was, the lab must say so and end
        traceback.print_exc()
    power_off()
