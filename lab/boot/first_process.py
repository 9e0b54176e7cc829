# SPDX-License-Identifier: Apache-2.0
"""The first process of a lab: namespaces, an agent in each, one point, power off.

Started by init.py with TESTCTL_LAB naming a JSON file: {"workdir", "outcome",
"t0_ns", "seed", "kernel_log" (a file for the kernel's taints and messages), "mode": "self-test", "point",
"programs", "cases" (case_runner.py) or "shell", "writable" (directories), "point": …}, for programs and a shell
"family" (lab/programs.py), and for programs "programs", "environment", "directory" and "ends" (a file).  The root is
the machine's, read-only.  Agents are forked from this process, which has loaded everything, because starting Python
is the slow part.
"""

from __future__ import annotations

import codecs
import functools
import itertools
import json
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import commands
import tracing
from early import libc, mount_writable, step_ended
from kernel_state import TAINTED, kernel_log, seed, waits_pass_time
from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.lab.programs import HOME, Ended, Program, names_of
from testctl.system.subprocesses import Process, interact, start_with, wait
from testctl.testbeds import network, point_runner
from testctl.testbeds.agents import LocalAgents
from testctl.testbeds.traffic_time import VirtualTime
from testctl_agent.engine import factory
from testctl_agent.engine.factory import AgentConfig
from testctl_agent.engine.local import forked_local_agent
from testctl_agent.params.flow.command import GENERATOR as COMMAND
from testctl_agent.system.namespace import check, enter, mount

RUN = Path("/run/testctl")
FORGET = Path("/sys/module/testctl_sched/parameters/forget")
RB_POWER_OFF = 0x4321FEDC
BACKENDS = ("netem", "ebpf")
"""Those of which everything is in one file; another one's modules are found as ever."""
SETTLE_NS = 2 * 10**7
"""Before the traffic: the last instant at which anything but generators and collectors runs."""
POLL_NS = 10**7
"""How often it is looked, after the generators' ends, whether connections have ended."""
DRAIN_NS = 2 * 10**8
"""How long no packet passes after the connections' ends, before anything else may run."""
DRAIN_LIMIT_NS = 10**10
"""How long connections may take to end after their generators."""
APART_NS = 10**8
"""From the start of a program of the user to that of the next, which so finds the first one waiting."""
ALONE_S, END_S = 1.0, 5.0
"""How long the others may go on when the last program has ended, and after SIGTERM."""
NO_PROGRAM = 127
"""The exit code of a program that can't be started, as in shells."""
MS_BIND = 4096
KERNEL_LOG, TRACE = "kernel.log", "kernel.trace"
PANIC_ON_OOM = Path("/proc/sys/vm/panic_on_oom")
"""2: the lab ends when its memory is full, instead of going on without one of its processes."""
LOG_TIMES = Path("/sys/module/printk/parameters/time")


def prepare() -> None:
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    os.environ["TMPDIR"] = HOME
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("bpf", "/run/bpf")):
        mount(kind, where)
    RUN.mkdir()
    Path(HOME).mkdir()


def allow_all() -> None:
    """Every congestion control in every namespace, and large buffers."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii")
    Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").write_text(available, encoding="ascii")
    for limit in ("rmem_max", "wmem_max"):
        Path(f"/proc/sys/net/core/{limit}").write_text(str(1 << 30), encoding="ascii")


def name_hosts(point: PointSpec, family: str) -> None:
    """Programs find the hosts of the topology by their names."""
    names, system = RUN / "hosts", Path("/etc/hosts")
    names.write_text(names_of(point.topology, family), encoding="ascii")
    if system.is_file():
        check(libc.mount(bytes(names), bytes(system), None, MS_BIND, None), f"mount {names} at {system}")


def load_everything() -> None:
    """Import whatever a point may need here, so that it can be listed (testctl/lab/boot_code.py)."""
    import case_runner  # noqa: F401

    codecs.lookup("ascii")  # which Python imports when the first file of that encoding is opened
    factory.load_code((kind, name) for kind in ("generator", "collector") for name in factory.own_tasks(kind))
    for backend in BACKENDS:
        factory.load_code((), backend)


def load_code(point: PointSpec) -> None:
    """Import once what the agents of the point need."""
    collectors = {("collector", name) for wanted in point.collect.values() for name in wanted}
    generators = {("generator", flow.generator) for flow in point.flows}
    factory.load_code(sorted(collectors | generators), point.backend)


def agents(point: PointSpec, workdir: Path) -> tuple[LocalAgents, list[int]]:
    """Every entity's agent, and their processes."""
    pipes, processes = {}, []
    for name in point.topology.entities:
        told = network.agent_config(point, name, workdir, RUN, point.kernel)
        config = AgentConfig.from_json(told | {"version": os.environ.get("TESTCTL_VERSION", "")})
        pid, pipes[name] = forked_local_agent(config, functools.partial(enter, name))
        processes.append(pid)
    return LocalAgents(pipes), processes


class Traffic:
    """The time in which the traffic passes, and only its programs run.

    An agent may have threads that wake up at times of their own, and a process that reads the clock moves it.  So
    this process, which runs the point and has no threads, stops the agents, sleeps, and lets them go on when the
    generators have ended.
    """

    def __init__(
        self,
        spec: dict[str, Any],
        point: PointSpec,
        agents: list[int],
        traffic: Callable[[dict[str, Any], PointSpec], Callable[[], None]],
    ) -> None:
        """traffic: given the lab's orders and the point just before the traffic, what lets it pass"""
        self._agents = agents
        self._spec = spec
        self._point = point
        self._traffic = traffic

    def hold(self) -> None:
        """Until the traffic is over."""
        for pid in self._agents:
            os.kill(pid, signal.SIGSTOP)
        self._pass()
        for pid in self._agents:
            os.kill(pid, signal.SIGCONT)

    def _pass(self) -> None:
        """Restart the kernel's random numbers, let the traffic pass, and wait for what is on its way."""
        sleep_until(self._spec["t0_ns"] - SETTLE_NS)
        traffic = self._traffic(self._spec, self._point)
        seed(self._spec["seed"])
        FORGET.write_text("1", encoding="ascii")
        step_ended("traffic")
        if self._point.trace:
            tracing.record()
        traffic()
        self._drain(time.time_ns())

    def _drain(self, now_ns: int) -> None:
        """Sleep until the connections have ended and their last packets have arrived.

        The kernel ends a connection after its process: what is on its way would meet agents that
        run, and be a few readings of the clock late.
        """
        end_ns = now_ns + DRAIN_LIMIT_NS
        before = None
        while (passed := packets(self._agents)) != before and now_ns <= end_ns:
            before = passed
            while connections(self._agents) and now_ns <= end_ns:
                now_ns += POLL_NS
                sleep_until(now_ns)
            now_ns += DRAIN_NS
            sleep_until(now_ns)


def flows(spec: dict[str, Any], point: PointSpec) -> Callable[[], None]:
    """The traffic of a point: sleep until no generator is left, or the point's limit.

    The generators are looked for before the traffic: each look at /proc reads the clock, how often
    depends on how many processes there are, and moves what is on its way.
    """
    endless = {f"{flow.name}-server" for flow in point.flows if flow.generator == COMMAND}
    running = {task: os.pidfd_open(pid) for task, pid in generators()}
    limit_ns = spec["t0_ns"] + max(point.end_ns(flow) for flow in point.flows) + point_runner.GRACE_NS

    def passes() -> None:
        wait_for([fd for task, fd in running.items() if task not in endless], limit_ns)
        stop([fd for task, fd in running.items() if task in endless])

    return passes


def stop(servers: list[int]) -> None:
    """End the servers of commands, each a pidfd, that do not end by themselves after their clients."""
    if servers:
        wait_for([os.dup(fd) for fd in servers], time.time_ns() + int(ALONE_S * 1e9))
        for fd in servers:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, signal.SIGTERM)
        wait_for(servers, time.time_ns() + int(END_S * 1e9))


def programs(spec: dict[str, Any], point: PointSpec) -> Callable[[], None]:
    """The traffic of the user's programs: one after the other is started, and the end of the last one is waited for.

    The others then get time to end by themselves, SIGTERM, time again, and SIGKILL.
    """
    wanted = [Program.from_json(one) for one in spec["programs"]]
    waits_pass_time()

    def passes() -> None:
        running: list[Process | None] = []
        for number, one in enumerate(wanted):
            sleep_until(spec["t0_ns"] + number * APART_NS)
            running.append(started(one, spec))
        if last := running[-1]:
            last.wait()
        ends = [ended(one, process) for one, process in zip(wanted, running, strict=True)]
        for process in running:
            if process is not None:
                kill(process, signal.SIGKILL)  # what a program left behind
        fresh = Path(spec["ends"])
        fresh.write_text(json.dumps([asdict(one) for one in ends]), encoding="utf-8")

    return passes


def started(program: Program, spec: dict[str, Any]) -> Process | None:
    """A program on its host; None, with a line in its output, when it can't be started.

    What it writes is at once in its file on the machine, so that nothing is lost when the lab is ended.
    """
    outputs = [os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DSYNC, 0o600)
               for name in (program.stdout, program.stderr)]  # fmt: skip
    try:
        argv = ["ip", "netns", "exec", program.host, *program.argv]
        return start_with(argv, (outputs[0], outputs[1]), spec["environment"], spec["directory"])
    except OSError as error:
        os.write(outputs[1], f"{program.words}: can't be started: {error.strerror}\n".encode())
        return None
    finally:
        for output in outputs:
            os.close(output)


def ended(program: Program, process: Process | None) -> Ended:
    """How a program ended; one that goes on is ended."""
    if process is None:
        return Ended(program.host, NO_PROGRAM)
    stopped = not wait(process, ALONE_S)
    if stopped:
        kill(process, signal.SIGTERM)
        if not wait(process, END_S):
            kill(process, signal.SIGKILL)
            process.wait()
    code = process.returncode
    return Ended(program.host, code if code >= 0 else 128 - code, stopped)


def kill(process: Process, number: signal.Signals) -> None:
    """Send a signal to a program and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def sleep_until(at_ns: int) -> None:
    """Sleep to an instant of the virtual clock."""
    time.sleep(max(at_ns - time.time_ns(), 0) / 1e9)


def wait_for(processes: list[int], limit_ns: int) -> None:
    """Sleep until all processes have ended, each a pidfd, or an instant of the virtual clock."""
    ends = select.poll()
    for fd in processes:
        ends.register(fd, select.POLLIN)
    left = set(processes)
    while left and (left_ns := limit_ns - time.time_ns()) > 0:
        for fd, _ in ends.poll(left_ns / 10**6):
            ends.unregister(fd)
            left.discard(fd)
    for fd in processes:
        os.close(fd)


def generators() -> list[tuple[str, int]]:
    """Tasks and processes of generators that have not ended: those whose errors go to a flow's directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            task = Path(os.readlink(path / "fd" / "2")).parent.name
        except OSError:
            continue  # ended, or a kernel thread
        if task.endswith(("-client", "-server")):
            found.append((task, int(path.name)))
    return found


def connections(agents: list[int]) -> int:
    """TCP sockets of the agents' network namespaces, those without a process too, but not in TIME-WAIT."""
    found = 0
    for pid, file in itertools.product(agents, ("sockstat", "sockstat6")):
        text = Path(f"/proc/{pid}/net/{file}").read_text(encoding="ascii")
        found += sum(int(count) for count in re.findall(r"^TCP6?: inuse (\d+)", text, re.MULTILINE))
    return found


def packets(agents: list[int]) -> list[str]:
    """The counters of the agents' devices."""
    return [Path(f"/proc/{pid}/net/dev").read_text(encoding="ascii") for pid in agents]


def main() -> None:
    prepare()
    spec = json.loads(Path(os.environ["TESTCTL_LAB"]).read_text(encoding="utf-8"))
    for where in spec["writable"]:
        mount_writable(where)
    if spec["mode"] == "cases":
        import case_runner

        case_runner.run_cases(spec)
        return
    allow_all()
    if spec["mode"] == "self-test":
        from testctl.testbeds import kernel_facts

        Path(spec["outcome"]).write_text(json.dumps(kernel_facts.facts()), encoding="utf-8")
        return
    point = PointSpec.from_json(spec["point"])
    if point.trace and (why := tracing.prepare(point.trace)):
        point_runner.write_outcome(Outcome(error=why), Path(spec["outcome"]))
        return
    if point.kernel_log:
        LOG_TIMES.write_text("Y", encoding="ascii")
    network.build(point.topology, point.backend, commands.run)
    step_ended("network")
    load_code(point)
    reached, pids = agents(point, Path(spec["workdir"]))
    step_ended("agents")
    if spec["mode"] != "point":
        name_hosts(point, spec["family"])
    if spec["mode"] == "shell":
        print(banner(point, spec["writable"]), flush=True)
        interact(["/bin/bash", "--norc"], env=os.environ | {"PS1": r"lab \w# ", "HOME": HOME})
        return
    PANIC_ON_OOM.write_text("2", encoding="ascii")
    traffic = Traffic(spec, point, pids, programs if spec["mode"] == "programs" else flows)
    hooks = point_runner.Hooks(hold=traffic.hold, step_ended=step_ended)
    runner = point_runner.PointRun(point, reached, VirtualTime(spec["t0_ns"]), hooks)
    try:
        point_runner.write_outcome(point_runner.outcome_of(runner), Path(spec["outcome"]))
    finally:
        Path(spec["kernel_log"]).write_bytes(TAINTED.read_bytes() + kernel_log())
    if point.trace:
        tracing.write(Path(spec["workdir"]) / TRACE)
    if point.kernel_log:
        (Path(spec["workdir"]) / KERNEL_LOG).write_bytes(kernel_log())


def banner(point: PointSpec, writable: list[str]) -> str:
    """What a shell begins with: who is where, and what can be changed."""
    topology = point.topology
    width = max(len(name) for name in topology.entities)
    lines = [
        f"Linux {os.uname().release} in virtual time: time passes while all programs wait. Leave it with: exit",
        "",
    ]
    lines += [f"  {name:{width}}  {'  '.join(topology.addresses(name))}" for name in topology.hosts]
    ports = {name: ", ".join(topology.neighbours[name]) for name in topology.switches}
    lines += [f"  {name:{width}}  {point.backend}, ports to {to}" for name, to in ports.items()]
    first = next(iter(topology.hosts))
    lines += ["", f"A command on one of them: ip netns exec {first} ping -c 1 {list(topology.hosts.values())[-1]}"]
    places = " and ".join(["/run, which is gone at the end", *writable])
    lines += [f"The files are this machine's, read-only; what can be written to: {places}.", ""]
    return "\n".join(lines)


def power_off() -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.sync()
    libc.reboot(RB_POWER_OFF)
    raise SystemExit("the lab did not power off")


def run_and_power_off() -> NoReturn:
    """Whatever happens, the lab says so and ends."""
    try:
        main()
    except BaseException:  # noqa: BLE001 -- whatever it was, the lab must say so and end
        import traceback

        traceback.print_exc()
    power_off()
