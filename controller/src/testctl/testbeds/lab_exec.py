# SPDX-License-Identifier: Apache-2.0
"""Programs of the user in a lab: from the words of a command line to how each of them ended."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from testctl_agent.spec import fate
from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.core.point import Point, PointSpec
from testctl.core.topology import Topology
from testctl.lab import machine, memory
from testctl.lab.programs import FAMILIES, Ended, Program, captured_in, search_path
from testctl.plan import load_plan
from testctl.plan.diagnostics import show, suggest
from testctl.plan.topology import find_topology
from testctl.plan.tuples import OVERRIDE
from testctl.testbeds.lab import LabTestbed
from testctl.testbeds.network import HOST_DEVICE
from testctl.testbeds.point_spec import ORIGIN, parts_of, spec_of

OWN, FLOW = "./own.yaml", "programs"
"""Names in the plan that point_for writes."""
WHOLE_BYTES = 262144
"""More than any packet has: captures are of whole packets."""


@dataclass(frozen=True)
class Order:
    """A point without traffic of its own, and the programs to run in it.

    captures  host -> the file for its packets
    family    whose addresses the names of hosts stand for, one of FAMILIES
    """

    point: Point
    programs: tuple[Program, ...]
    captures: dict[str, Path]
    writable: Path | None = None
    timeout_s: float = 300.0
    family: str = "4"


def point_for(topology: str, kernel: str | None, sets: Sequence[str], family: str = "4") -> Point:
    """A point without flows: the topology and what --set sets.

    topology  a name, or the path of a file, and its parameters: star:hosts=8
    sets      ENTITY.PARAM=VALUE words; the paths of files in them begin at the current directory
    family    one of FAMILIES; with "6" and "both" hosts have IPv4 and IPv6 addresses

    Raises PlanError.
    """
    check_family(family)
    for word in sets:
        _check_has_no_flow(word)
    name, _, parameters = topology.partition(":")
    own = "/" in name or name.endswith(".yaml")
    file = find_topology(name)
    values = dict(file.parameter(word) for word in parameters.split(",") if word)
    hosts = list(file.resolve(values).hosts)
    # The reader of plans wants a flow and a tuple; they carry nothing, and are removed below.
    plan_text = json.dumps({
        "topology": {OWN if own else name: values} if values else OWN if own else name,
        "flows": {FLOW: f"{hosts[0]} -> {hosts[1]}"},
        "tuples": [[FLOW, "duration", "1s"]],
    })  # fmt: skip
    overrides = [*sets, *([f"hosts.kernel='{kernel}'"] if kernel is not None else [])]
    text = Path(name).read_text(encoding="utf-8") if own else None
    plan = load_plan(plan_text.encode(), overrides=overrides, topology_text=text, directory=Path())
    for assignment in plan.assignments:
        roles = {target.spec.role for target in assignment.targets} if assignment.rank >= OVERRIDE else set()
        if roles - {"state", "testbed"}:
            raise PlanError(f"--set {assignment.key}: {_NO_FLOWS}")
    if len(plan.points) != 1:
        raise PlanError(f"--set: want one value for each setting; got {len(plan.points)} combinations")
    point = replace(plan.points[0], flows=())
    if parts := parts_of(point):
        got = "; ".join(f"{part.kernel} for {', '.join(part.entities)}" for part in parts)
        raise PlanError(f"--set: want one kernel for all hosts and switches; got several: {got} (kernel, partition)")
    return point if family == "4" else replace(point, topology=point.topology.with_hosts6())


_NO_FLOWS = "want a setting of a host, switch or port; programs have no options of flows, --capture records packets"


def _check_has_no_flow(word: str) -> None:
    """Raises PlanError for ENTITY.PARAM=VALUE of a flow, or about one."""
    key, _, value = word.partition("=")
    entity, _, param = key.strip().partition(".")
    if entity in (FLOW, "flows"):
        raise PlanError(f"--set {key}: {_NO_FLOWS}")
    if param == "background":
        raise PlanError(f"--set {key}: want it in a plan, with whose flows background traffic begins and ends")
    if param == "fate" and value.strip() != fate.NONE:
        raise PlanError(
            f"--set {key}: want it in a plan, whose flows fates are about; those of programs are of no flow"
        )


def check_family(family: str) -> None:
    """Raises PlanError for anything but one of FAMILIES."""
    if family not in FAMILIES:
        raise PlanError(f"--family: want {', '.join(FAMILIES[:-1])} or {FAMILIES[-1]}; got {show(family)}")


def programs_of(hosts: Sequence[str], command: Sequence[str], topology: Topology) -> tuple[Program, ...]:
    """The programs of HOST=COMMAND words, in their order, and behind them the command's, if there is one.

    A word that is only HOST says where the command is run; without one it is the topology's first host.

    Raises PlanError for a host that is not in the topology and for a command that is not there.
    """
    programs, places = [], []
    for word in hosts:
        host, equals, text = word.partition("=")
        if host not in topology.hosts:
            hint = suggest(host, topology.hosts) or f"; it has {', '.join(topology.hosts)}"
            raise PlanError(f"--host {show(host)}: topology {topology.name} has no such host{hint}")
        if not equals:
            places.append(host)
            continue
        try:
            argv = shlex.split(text)
        except ValueError as error:
            raise PlanError(f"--host {show(word)}: {error}") from error
        programs.append(_program(host, argv))
    if len(places) > 1 or (places and not command):
        raise PlanError(f"--host {show(places[-1])}: want one HOST for the COMMAND after --, or HOST=COMMAND")
    if command:
        programs.append(_program(places[0] if places else next(iter(topology.hosts)), command))
    if not programs:
        raise PlanError("want a COMMAND after --, such as: testctl lab exec -- ping -c 1 receiver")
    used = [program.host for program in programs]
    if again := next((host for number, host in enumerate(used) if host in used[:number]), ""):
        raise PlanError(f"--host {again}: want one command on each host; got two (a shell starts more: sh -c '… & …')")
    return tuple(programs)


def _program(host: str, argv: Sequence[str]) -> Program:
    """Raises PlanError for a command that is not there, or that a lab can't hold."""
    if not argv or not argv[0]:
        raise PlanError(f"--host {host}: want a command; got none")
    if any("\0" in word for word in argv):
        raise PlanError(f"{host}: want a command without NUL")
    path = search_path()
    if shutil.which(argv[0], path=path) is None:
        where = "not there, or can't be executed" if "/" in argv[0] else f"not in PATH ({path})"
        raise PlanError(f"{host}: {show(argv[0])}: {where}")
    return Program(host, tuple(argv))


def captures_of(file: Path | None, programs: Sequence[Program]) -> dict[str, Path]:
    """The capture's file of each host: the file itself, or with several programs its name with the host's added.

    Raises PlanError for a place where no file can be written.
    """
    if file is None:
        return {}
    if not file.parent.is_dir() or file.is_dir() or not file.name:
        raise PlanError(f"--capture {show(str(file))}: want a file in a directory that is there")
    if len(programs) == 1:
        return {programs[0].host: file}
    return {program.host: file.with_name(f"{file.stem}-{program.host}{file.suffix}") for program in programs}


def execute(order: Order, workdir: Path, printed: Callable[[], None]) -> tuple[list[Ended], list[str]]:
    """Run the programs: how each ended, and what the lab's kernel reported of itself, such as a warning.

    Their outputs lie in workdir as HOST.stdout and HOST.stderr, and `printed` is called on.

    Raises TestbedError when the lab failed, with its reason; PlanError when it can't have a setting.
    """
    lab = LabTestbed.for_points([order.point])
    spec = memory.with_rings(_spec_of(order))
    programs = [with_outputs(program, workdir) for program in order.programs]
    for program in programs:
        Path(program.stdout).touch()
        Path(program.stderr).touch()
    ends, outcome = machine.run_programs(
        spec, lab.kernels[spec.kernel].binary, workdir, programs, order.timeout_s, lab.program,
        order.writable, printed, order.family,
    )  # fmt: skip
    if outcome.error:
        raise TestbedError(outcome.error)
    for host, file in order.captures.items():
        shutil.copyfile(captured_in(workdir, host), file)
    return ends, outcome.kernel_faults


def with_outputs(program: Program, workdir: Path) -> Program:
    where = workdir.resolve()
    return replace(program, stdout=f"{where}/{program.host}.stdout", stderr=f"{where}/{program.host}.stderr")


def _spec_of(order: Order) -> PointSpec:
    """The point as a lab gets it: it records the order's captures, and nothing else.

    The times of links that change begin with the first program.
    """
    spec = spec_of(order.point)
    collect = {name: {ORIGIN: given[ORIGIN]} for name, given in spec.collect.items() if ORIGIN in given}
    for host in order.captures:
        collect[host] = {"capture": {"device": HOST_DEVICE, "snap_bytes": WHOLE_BYTES, "packets": "all"}}
    return replace(spec, collect=collect)
