# SPDX-License-Identifier: Apache-2.0
"""The lab as a testbed: a point in, its raw outcome out."""

from __future__ import annotations

import compileall
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from testctl_agent.spec import p4_program
from testctl_agent.spec.errors import TestbedError
from testctl_agent.switch import testbed_object
from testctl_agent.system import own_files, tgen_program

from testctl.core.outcome import Outcome
from testctl.core.point import Point, PointSpec
from testctl.lab import boot_parameters, machine, memory, shared_time
from testctl.lab.boot_code import BootCode, boot_code
from testctl.lab.built import kernel_for
from testctl.lab.kernel import Kernel, directory
from testctl.lab.kernel_ccs import ccs_of, check_ccs
from testctl.lab.sysctls import check_sysctls
from testctl.system import checkout, p4_programs, temporary
from testctl.system.code_hash import closure, file_of, imports, modules_below
from testctl.testbeds import lab_parts, point_spec
from testctl.testbeds.code_key import CodeKey
from testctl.testbeds.point_spec import (
    backend_of,
    code_with_others,
    kernels_of,
    on_kernel,
    own_programs,
    refuse_commands,
    spec_of,
)

WALL_S = 120.0
WALL_PER_VIRTUAL = 60.0
WALL_PER_AGENT = 20.0


def unchanged(spec: PointSpec) -> PointSpec:
    return spec


@dataclass(frozen=True)
class LabTestbed:
    """Boots a new lab for each point.  Picklable: workers get a copy.

    kernels       the built kernel of each name a plan uses
    code          hash of the code that runs in the lab on the kernel
    program       the switch's program, compiled; None when no point runs it
    wall_limit_s  watchdog; None: 120 s, 60 s a virtual second and 20 s a host or switch
    prepare       changes a point before it is run; picklable
    boot          how the first process is started; None: from its files
    seccomp       whether user processes run by seccomp; None: if the kernel's self-test allows it
    commands      whether points may start programs of their plan (generator `command`)
    parameters    further words of the kernel's command line
    """

    kernels: dict[str, Kernel]
    code: str
    program: Path | None = None
    wall_limit_s: float | None = None
    prepare: Callable[[PointSpec], PointSpec] = unchanged
    boot: BootCode | None = None
    seccomp: bool | None = None
    commands: bool = False
    parameters: tuple[str, ...] = ()

    @classmethod
    def for_points(
        cls,
        points: Iterable[Point],
        wall_limit_s: float | None = None,
        commands: bool = False,
        kernels: Mapping[str, Kernel] | None = None,
    ) -> LabTestbed:
        """Removes what labs that were killed left.

        kernels: in place of those that are built, by their names

        Raises TestbedError when a kernel is not built from what they need, with the command that builds it;
        PlanError when it lacks a sysctl that they set, none has a congestion control, or they would start programs
        and `commands` is false; ProgramError.
        """
        points = list(points)
        refuse_commands(points, commands)
        temporary.remove_temporary()
        boot_parameters.check()
        _compile()
        chosen = {}
        for name in sorted({name for point in points for name in kernels_of(point)}):
            on_it = on_kernel(points, name)
            chosen[name] = (kernels or {}).get(name) or kernel_for(name, ccs_of(on_it))
            check_sysctls(on_it, chosen[name])
        check_ccs(points, chosen.values())
        runs = any(backend_of(point) == "ebpf" for point in points)
        code = code_hash()
        program = testbed_object.path() if runs else None
        boot = _boot_code(code, any(own_programs(point) for point in points))
        return cls(chosen, code, program, wall_limit_s, boot=boot, commands=commands)

    @classmethod
    def on(cls, kernels: dict[str, Kernel]) -> LabTestbed:
        """The lab with these kernels, whatever they were built from, and with the switch's program."""
        _compile()
        return cls(kernels, code_hash(), testbed_object.path())

    def here(self) -> LabTestbed:
        """The same lab with the cache and checkout of this machine, which may differ from the controller's.

        Raises TestbedError when a kernel is not in the cache; ProgramError.
        """
        _compile()
        kernels = {}
        for name, original in self.kernels.items():
            kernel = Kernel(name, original.key, directory() / original.directory.name)
            if not kernel.built:
                raise TestbedError(
                    f"kernel {name}, as the controller has it, is not at {kernel.directory}; copy it there, or build it"
                    f" from the same sources: testctl lab build {name}"
                )
            kernels[name] = kernel
        program = testbed_object.path() if self.program is not None else None
        code = code_hash()
        boot = _boot_code(code, self.boot is not None and p4_program.PROGRAMS in self.boot.environment)
        return LabTestbed(kernels, code, program, self.wall_limit_s, boot=boot, commands=self.commands)

    def code_key(self, point: Point) -> str:
        """What besides the point determines its records: the kernel, and what runs in the lab with it."""
        program = ""
        if self.program is not None and backend_of(point) == "ebpf":
            digest = hashlib.sha256(self.program.read_bytes())
            for own in sorted(set(own_programs(point).values())):
                for file in (testbed_object.front()[0], p4_programs.compiled(own) / p4_program.OBJECT):
                    digest.update(file.read_bytes())
            program = digest.hexdigest()[:16]
        code = code_with_others(self.code, point)
        kernel = ",".join(self.kernels[name].key for name in kernels_of(point))
        memory_mb = os.environ.get(memory.SET, "")
        return str(CodeKey(kernel, code, program, memory_mb, boot_parameters.key()))

    def spec(self, point: Point) -> PointSpec:
        """The point as a lab gets it.  Raises PlanError for one that would start programs and may not."""
        refuse_commands([point], self.commands)
        return memory.with_rings(self.prepare(spec_of(point)))

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        """(the point as the lab got it, the outcome); raw files lie below workdir."""
        spec = self.spec(point)
        agents = len(spec.topology.entities)
        limit_s = self.wall_limit_s or WALL_S + WALL_PER_VIRTUAL * spec.duration_ns / 1e9 + WALL_PER_AGENT * agents
        rest = (workdir, limit_s, self.program, self.boot, self.seccomp, self.parameters)
        if spec.parts:
            outcome = lab_parts.run_parts(spec, [self.kernels[part.kernel].binary for part in spec.parts], *rest)
        else:
            outcome = machine.run_point(spec, self.kernels[spec.kernel].binary, *rest)
        return spec, outcome


def _boot_code(code: str, has_programs: bool) -> BootCode:
    """has_programs: some switch has a P4 program of the user's."""
    boot = boot_code(code, boot_modules())
    more = {p4_program.PROGRAMS: str(p4_programs.directory())} if has_programs else {}
    return replace(boot, environment={**boot.environment, **more})


def code_hash() -> str:
    """Hash of the code that runs in the lab besides the kernel, and of the code that starts it."""
    digest = hashlib.sha256()
    for name, path in sorted(code_files().items()):
        if not path.is_file():
            raise TestbedError(f"{path}: there is no such file; it runs in the lab")
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def code_files() -> dict[str, Path]:
    """What code_hash covers: the agents, tgen, the lab's first process and whatever it imports of the controller."""
    boot = _boot()
    home = _agents()
    agents = [path for path in home.rglob("*") if path.is_file()]
    agents = [path for path in agents if not {"__pycache__", own_files.DATA} & set(path.relative_to(home).parts)]
    plain = {f"agents/src/{path.relative_to(home.parent)}": path for path in agents}
    plain |= {f"lab/boot/{path.name}": path for path in boot}
    plain["agents/tgen/tgen"] = Path(tgen_program.ready())
    loaded = closure(name for path in boot for name in imports(path))
    own = {name: path for name, path in loaded.items() if not name.startswith("testctl_agent")}
    starts = {
        module.__name__: Path(str(module.__file__)) for module in (machine, memory, point_spec, lab_parts, shared_time)
    }
    return plain | own | starts


def boot_modules() -> dict[str, Path]:
    """The project's modules that a lab may import, by name."""
    own = {path.stem: path for path in _boot() if path.stem != "init"}
    agents = {name: path for name in modules_below("testctl_agent") if (path := file_of(name))}
    return own | agents | closure(name for path in _boot() for name in imports(path))


def _boot() -> list[Path]:
    return sorted((checkout.lab() / "boot").glob("*.py"))


def _agents() -> Path:
    init = file_of("testctl_agent")
    assert init is not None
    return init.parent


def _compile() -> None:
    """Python's bytecode of what runs in the lab, where it can't be kept: a lab would compile it anew each time."""
    compileall.compile_dir(_agents(), quiet=2)
