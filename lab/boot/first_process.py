# SPDX-License-Identifier: Apache-2.0
"""The first process of a lab: namespaces, an agent in each, one point, power off.

Started by init.py with TESTCTL_LAB naming a JSON file: {"workdir", "outcome",
"t0_ns", "seed", "kernel_log" (a file for the kernel's taints and messages), "mode": "self-test", "point",
"programs", "cases" (case_runner.py) or "shell", "writable" (directories), "point": …}, for programs and a shell
"family" (lab/programs.py), and for programs "programs", "environment", "directory" and "ends" (a file).  The root is
the machine's, read-only.  Agents are part of this process, or forked from it, which has loaded everything, because
starting Python is the slow part.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import commands
import coverage
import kernel_links
import tracing
from early import fill_no_more, libc, mount_writable, step_ended
from kernel_state import TAINTED, kernel_log
from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.lab.programs import HOME, names_of
from testctl.system.subprocesses import interact
from testctl.testbeds import network, point_runner
from testctl.testbeds.agents import LocalAgents
from testctl.testbeds.traffic_time import VirtualTime
from testctl_agent.engine import factory
from testctl_agent.engine.factory import AgentConfig
from testctl_agent.engine.local import HereAgent, forked_local_agent
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.system.namespace import Place, check, enter, mount
from testctl_agent.wire.messages import plain
from testctl_agent.wire.pipe import Pipe
from traffic import Forked, Here, Passive, Traffic, flows
from user_programs import programs

RUN = Path("/run/testctl")
RB_POWER_OFF = 0x4321FEDC
BACKENDS = ("netem", "ebpf")
"""Those of which everything is in one file; another one's modules are found as ever."""
OPEN_FILES = 900
"""So many of the 1024 that a process may have agents may take."""
MS_BIND = 4096
KERNEL_LOG, TRACE, COVERAGE, MUTANTS = "kernel.log", "kernel.trace", "kernel.coverage", "mutants"
PANIC_ON_OOM = Path("/proc/sys/vm/panic_on_oom")
"""2: the lab ends when its memory is full, instead of going on without one of its processes."""
REACHED = Path("/sys/module/testctl_mutants/parameters/seen")
"""Of a kernel with mutants: which of them the point reached."""
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
    import resource  # noqa: F401

    import case_runner  # noqa: F401

    codecs.lookup("ascii")  # which Python imports when the first file of that encoding is opened
    factory.load_code((kind, name) for kind in ("generator", "collector") for name in factory.own_tasks(kind))
    for backend in BACKENDS:
        factory.load_code((), backend)


def load_code(point: PointSpec) -> None:
    """Import once what the agents of the point need."""
    factory.load_code(tasks(point), point.backend)


def settings_of(point: PointSpec, name: str) -> dict[str, dict[str, Value]]:
    """What the point will set on an entity and its ports: of a lab that is all there will be."""
    return {
        entity: {parameter: plain(value) for parameter, value in values.items()}
        for entity, values in point.state.items()
        if point_runner.owner(entity) == name
    }


def config_of(point: PointSpec, name: str, workdir: Path) -> AgentConfig:
    told = network.agent_config(point, name, workdir, RUN, point.kernel_of(name))
    told |= {"version": os.environ.get("TESTCTL_VERSION", ""), "settings": settings_of(point, name)}
    return AgentConfig.from_json(told)


def agents(point: PointSpec, workdir: Path, names: Sequence[str]) -> tuple[LocalAgents, Passive]:
    """The agent of each of these entities, and how they are kept from acting while the traffic passes.

    They are in this process if none may start a thread, which would go on when all but the traffic is to wait.
    """
    if factory.without_threads(tasks(point), point.backend, parameters(point)):
        if (most := files(point)) > OPEN_FILES:
            allow_files(most)
        home = Place.here()
        here = {name: HereAgent(config_of(point, name, workdir), home, partial(enter, name)) for name in names}
        return LocalAgents(here), Here(home, [agent.place for agent in here.values()])
    pipes, processes = forked_agents(point, workdir, names)
    return LocalAgents(pipes), Forked(processes)


def forked_agents(point: PointSpec, workdir: Path, names: Sequence[str]) -> tuple[dict[str, Pipe], list[int]]:
    """The agents, and their processes."""
    pipes, processes = {}, []
    for name in names:
        pid, pipes[name] = forked_local_agent(config_of(point, name, workdir), partial(enter, name))
        processes.append(pid)
    return pipes, processes


def files(point: PointSpec) -> int:
    """How many files the agents of a point have open at the most: maps of a switch's program, recorders, pipes."""
    return 80 * len(point.topology.switches) + 8 * (len(point.topology.hosts) + len(point.flows))


def allow_files(most: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (most + OPEN_FILES, most + OPEN_FILES))


def tasks(point: PointSpec) -> list[tuple[str, str]]:
    """The generators and collectors of a point: kind and name."""
    collectors = {("collector", name) for wanted in point.collect.values() for name in wanted}
    return sorted(collectors | {("generator", flow.generator) for flow in point.flows})


def parameters(point: PointSpec) -> list[tuple[str, str]]:
    """What the point sets: the kind of the entity, and the name."""
    hosts, switches = point.topology.hosts, point.topology.switches
    kinds = {
        entity: "host" if entity in hosts else "switch" if entity in switches else "port" for entity in point.state
    }
    return [(kinds[entity], name) for entity, values in point.state.items() for name in values]


def main() -> None:
    prepare()
    spec = json.loads(Path(os.environ["TESTCTL_LAB"]).read_text(encoding="utf-8"))
    for where in spec["writable"]:
        mount_writable(where)
    if spec["mode"] == "cases":
        fill_no_more()
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
    if point.counts_coverage:
        coverage.prepare()
    if point.kernel_log:
        LOG_TIMES.write_text("Y", encoding="ascii")
    network.build(point.topology, point.backend, commands.run, sums=network.sums_matter(point))
    names = point.topology.entities
    prefix = ""
    if part := spec.get("part"):
        kernel_links.cut(part)
        names = point.parts[part["index"]].entities
        prefix = f"{names[0]}."  # of this kernel's files
    step_ended("network")
    load_code(point)
    fill_no_more()
    try:
        reached, passive = agents(point, Path(spec["workdir"]), names)
    except TestbedError as error:
        if spec["mode"] == "shell":
            raise
        point_runner.write_outcome(Outcome(error=str(error)), Path(spec["outcome"]))
        write_kernel_log(spec)
        return
    step_ended("agents")
    if spec["mode"] != "point":
        name_hosts(point, spec["family"])
    if spec["mode"] == "shell":
        print(banner(point, spec["writable"]), flush=True)
        interact(["/bin/bash", "--norc"], env=os.environ | {"PS1": r"lab \w# ", "HOME": HOME})
        return
    PANIC_ON_OOM.write_text("2", encoding="ascii")
    passing = Traffic(spec, point, passive, programs if spec["mode"] == "programs" else flows)
    hooks = point_runner.Hooks(hold=passing.hold, step_ended=step_ended)
    runner = point_runner.PointRun(point, reached, VirtualTime(spec["t0_ns"]), hooks)
    try:
        point_runner.write_outcome(point_runner.outcome_of(runner), Path(spec["outcome"]))
    finally:
        write_kernel_log(spec)
    if part:
        Path(spec["outcome"]).with_name(part["waited"]).write_text(kernel_links.waited_ns(), encoding="ascii")
    if REACHED.exists():
        (Path(spec["workdir"]) / MUTANTS).write_bytes(REACHED.read_bytes())
    if point.trace:
        tracing.write(Path(spec["workdir"]) / f"{prefix}{TRACE}")
    if passing.counted is not None:
        passing.counted.write(Path(spec["workdir"]) / f"{prefix}{COVERAGE}")
    if point.kernel_log:
        (Path(spec["workdir"]) / f"{prefix}{KERNEL_LOG}").write_bytes(kernel_log())


def write_kernel_log(spec: dict[str, Any]) -> None:
    Path(spec["kernel_log"]).write_bytes(TAINTED.read_bytes() + kernel_log())


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
    lines += ["", f"A command on one of them: ip netns exec {first} ip address"]
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
