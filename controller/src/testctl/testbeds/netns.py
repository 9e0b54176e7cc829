# SPDX-License-Identifier: Apache-2.0
"""The lab's topologies as network namespaces of the running kernel, in wall-clock time; needs root.

Nothing is left: the names of namespaces carry their owner, and a run first removes what owners that were killed
left (system/netns_names.py).  Registered congestion controls, which belong to the whole kernel, are kept by the agents
(testctl_agent/cc/shared.py).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import platform
import signal
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testctl_agent.cc import shared
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.switch import testbed_object
from testctl_agent.system.toolchain import KERNEL_TYPES
from testctl_agent.wire import messages
from testctl_agent.wire.messages import Message
from testctl_agent.wire.pipe import Pipe

from testctl.core.outcome import Outcome
from testctl.core.point import Point, PointSpec
from testctl.system import checkout
from testctl.system.netns_names import HOMES, NAMED, Owner, remove, remove_abandoned, start_time
from testctl.system.subprocesses import Process, run, start, wait
from testctl.testbeds import network
from testctl.testbeds.agents import CALL_S, errors_of
from testctl.testbeds.at_once import AtOnce
from testctl.testbeds.lab import code_hash
from testctl.testbeds.point_runner import Hooks, PointRun, outcome_of
from testctl.testbeds.point_spec import backend_of, code_with_others, refuse_commands, spec_of
from testctl.testbeds.preflight import Paths
from testctl.testbeds.ready import ReadyTestbed
from testctl.testbeds.requirements import Diagnosis
from testctl.testbeds.testbed import Request, Testbed
from testctl.testbeds.traffic_time import WallTime

READY_S = 30.0
END_S = 10.0
LAST_LINES = 15
"""Of the agents' log that an error shows."""
CLEAN_TRIES = 10
IPV6 = Path("/proc/sys/net/ipv6")
"""Not there: the kernel has no IPv6, or was booted without."""
_serial = itertools.count(1)


@dataclass(frozen=True)
class NetnsTestbed:
    """Creates a new network for each point, with an agent in each namespace.  Picklable: workers get a copy.

    code      hash of the code that runs on the kernel
    program   the switch's program, compiled; None when no point runs it
    commands  whether points may start programs of their plan (generator `command`)
    """

    code: str
    program: Path | None = None
    commands: bool = False

    @classmethod
    def for_points(
        cls, points: Iterable[Point], wall_limit_s: float | None = None, commands: bool = False
    ) -> NetnsTestbed:
        """Removes what killed runs left.

        Raises TestbedError for who isn't root, PlanError when wall_limit_s is given: time is the wall clock's here,
        and a point's length is the plan's to say, and for points that would start programs without `commands`.
        ProgramError.
        """
        if os.geteuid() != 0:
            raise TestbedError(
                "--testbed netns makes network namespaces and devices, which only root may: "
                "run it as root (sudo), or take --testbed lab, which needs no root"
            )
        if wall_limit_s is not None:
            raise PlanError("--wall-limit: want none on netns, which runs by the wall clock; set the flows' duration")
        points = list(points)
        refuse_commands(points, commands)
        remove_abandoned()
        shared.remove_unused()
        runs = any(backend_of(point) == "ebpf" for point in points)
        return cls(code_hash(), testbed_object.path() if runs else None, commands)

    def code_key(self, point: Point) -> str:
        """Everything besides the point and randomness that determines its records."""
        code = code_with_others(self.code, point)
        key = [platform.node(), platform.release(), code, shared.fingerprint(checkout.lab() / "cc")]
        if self.program is not None and backend_of(point) == "ebpf":
            key.append(hashlib.sha256(self.program.read_bytes()).hexdigest()[:16])
        return "-".join(["netns", *key])

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        """(the point as the testbed got it, the outcome); raw files lie below workdir."""
        refuse_commands([point], self.commands)
        spec = replace(spec_of(point), kernel=platform.release())
        if reason := other_kernel(point):
            return spec, Outcome(skip=reason)
        with _home() as (home, prefix):
            if missing := _no_network(spec, prefix):
                return spec, Outcome(skip=missing)
            network.build(spec.topology, spec.backend, lambda argv, text: run(argv, stdin=text), prefix,
                          network.sums_matter(spec))  # fmt: skip
            configs = []
            for name in spec.topology.entities:
                kernel = str(spec.settings.get(name, {}).get("kernel") or "")
                config = network.agent_config(spec, name, workdir.resolve(), home, kernel)
                configs.append({"config": config, "namespace": prefix + name})
            with _launched(configs, home, self._environment(home)) as agents:
                point_run = PointRun(spec, agents, WallTime(), Hooks(before=Paths(spec, agents).probe))
                return spec, outcome_of(point_run)

    def _environment(self, home: Path) -> dict[str, str]:
        kept = ("HOME", "TESTCTL_CACHE", "XDG_CACHE_HOME", "TESTCTL_TGEN")
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "TMPDIR": str(home),
            shared.SOURCES: str(checkout.lab() / "cc"),
            **({testbed_object.GIVEN: str(self.program)} if self.program else {}),
        }


def testbed(word: str) -> Testbed:
    return Netns()


class Netns(Testbed):
    """The testbed `netns`, as the command line names it.  Points on other kernels than the running one are skipped."""

    def ready(self, points: Sequence[Point], request: Request) -> ReadyTestbed:
        request.refuse_wait("netns")
        return NetnsTestbed.for_points(points, request.wall_limit_s, request.commands)

    def requirements(self) -> list[Diagnosis]:
        root, types = os.geteuid() == 0, (Path("/") / KERNEL_TYPES)
        return [
            Diagnosis("netns: root", root, "yes" if root else "another user", "run it with sudo", optional=True),
            Diagnosis(
                "netns: types of the running kernel",
                types.exists(),
                str(types) if types.exists() else f"no {types}: no congestion controls as BPF, no tcp_events",
                "boot a kernel with CONFIG_DEBUG_INFO_BTF",
                optional=True,
            ),
        ]

    def interrupted(self) -> None:
        """What this process's own workers started ends a moment after they were killed."""
        for _ in range(CLEAN_TRIES):
            remove_abandoned()
            shared.remove_unused()
            if not shared.there():
                return
            time.sleep(0.1)


def other_kernel(point: Point) -> str:
    """Why a point that asks for a kernel can't run on this one; "" when it can."""
    release = platform.release()
    version = ".".join(release.split("-")[0].split(".")[:2])
    for host in point.topology.hosts:
        wanted = point.settings.get(host, {}).get("kernel")
        if wanted not in (None, version, release):
            return f"{host}, kernel: want {wanted}; this testbed runs {version} ({release}), see --kernel {version}"
    return ""


def _no_network(spec: PointSpec, prefix: str) -> str:
    """Why the point's network can't be made here: no IPv6, or no bridge for a back end that wants one; "" if it can."""
    if spec.topology.hosts6 and not IPV6.exists():
        return f"{', '.join(spec.topology.hosts6)}, family: want IPv6; this kernel has none ({IPV6})"
    if spec.backend not in network.BRIDGED:
        return ""
    try:
        run(["ip", "-batch", "-"], stdin=f"netns add {prefix}try\n")
        run(["ip", "-n", f"{prefix}try", "link", "add", network.BRIDGE, "type", "bridge"])
    except TestbedError:
        switches = ", ".join(spec.topology.switches)
        return f"{switches}: back end {spec.backend} forwards by a bridge, which this kernel has not"
    return ""


@contextmanager
def _home() -> Iterator[tuple[Path, str]]:
    """A directory for journals and logs, and the prefix of the namespaces; all of it is gone afterwards."""
    pid = os.getpid()
    owner = Owner(pid, start_time(pid) or 0)
    remove_abandoned()
    name = f"{owner.name}-{next(_serial)}"
    home = HOMES / name
    home.mkdir(parents=True, mode=0o700)
    try:
        yield home, f"{name}-"
    finally:
        for path in NAMED.glob(f"{name}-*"):
            remove(path)
        remove(home)


class PipedAgents(AtOnce):
    """Agents behind `pipes`, by the plan's names of their entities."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.pipes: dict[str, Pipe] = {}

    def call(self, name: str, method: str, request: Message, timeout_s: float = CALL_S) -> Any:
        with errors_of(name):
            return self.pipes[name].call(method, request, timeout_s)

    def close(self) -> None:
        super().close()
        for pipe in self.pipes.values():
            pipe.close()


@contextmanager
def _launched(configs: Sequence[dict[str, Any]], home: Path, environment: Mapping[str, str]) -> Iterator[PipedAgents]:
    """The agents, which have answered; killed with all they started afterwards.  TestbedError with their output.

    configs: the launcher's configuration of each agent
    """
    file, log = home / "agents.json", home / "agents.log"
    file.write_text(json.dumps(configs), encoding="utf-8")
    ours, theirs = socket.socketpair()
    argv = [sys.executable, "-m", "testctl_agent.engine.launcher", str(file), str(theirs.fileno())]
    with ours:
        with theirs:
            process = start(argv, log=log, env=environment, files=[theirs.fileno()])
        agents = PipedAgents([config["config"]["name"] for config in configs])
        try:
            for name in agents.names:
                agents.pipes[name] = _pipe_from(ours, log)
            agents.all("Restore", dict.fromkeys(agents.names, messages.RestoreRequest()))  # nothing yet: all are there
            yield agents
        finally:
            _end(process)
            agents.close()
            shared.remove_unused()


def _end(process: Process) -> None:
    """The launcher ends when all of its processes have ended."""
    process.terminate()
    if not wait(process, END_S):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _pipe_from(launcher: socket.socket, log: Path) -> Pipe:
    """The pipe to the next agent.  Raises TestbedError when there is none."""
    launcher.settimeout(READY_S)
    try:
        _, files, _, _ = socket.recv_fds(launcher, 1, 2, socket.MSG_CMSG_CLOEXEC)
    except TimeoutError as error:
        raise TestbedError(f"the agents did not start within {READY_S:g} s: {_last_output(log)}") from error
    if not files:
        raise TestbedError(f"the agents ended: {_last_output(log)}")
    return Pipe(os.fdopen(files[0], "wb"), os.fdopen(files[1], "rb"), functools.partial(_last_output, log))


def _last_output(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-LAST_LINES:]
    return "\n  ".join(lines) or "no output"
