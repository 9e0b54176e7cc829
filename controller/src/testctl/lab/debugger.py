# SPDX-License-Identifier: Apache-2.0
"""A lab whose kernel runs in gdb: the commands that gdb gets before the user's own, and the virtual time in it."""

from __future__ import annotations

import shlex
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.lab import boot_parameters, machine, memory
from testctl.lab.boot_code import BootCode
from testctl.lab.cpu_pinning import own_processor
from testctl.system import temporary
from testctl.system.subprocesses import interact

SIGNALS = ("SIGSEGV", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGIO", "SIGWINCH", "SIGCHLD", "SIGSYS")
"""What the kernel uses in its own work."""

_HELP = """
set pagination off
set confirm off
set width 0
set startup-with-shell on
set breakpoint pending on
set follow-fork-mode parent
set detach-on-fork on
set print inferior-events off
set print thread-events off
{handles}
python
class Ms(gdb.Function):
    '''$ms(): milliseconds of virtual time since the point's traffic began, as in its records.'''
    def __init__(self):
        super().__init__("ms")
    def invoke(self):
        now = int(gdb.parse_and_eval("*(unsigned long long *)&time_travel_time"))
        return (now - {t0_ns}) / 1e6
Ms()
def stopped(event):
    if gdb.selected_inferior().pid:
        print("virtual time %.6f ms" % float(gdb.parse_and_eval("$ms()")))
gdb.events.stop.connect(stopped)
end
set args {args}
"""


def gdb() -> str:
    """gdb's path.  Raises TestbedError if it is not installed."""
    path = shutil.which("gdb")
    if path is None:
        raise TestbedError("gdb is not installed; install it with: apt-get install gdb")
    return path


def resolved(scripts: Sequence[Path]) -> list[Path]:
    """Raises PlanError for a file of commands that is not there."""
    for file in scripts:
        if not file.is_file():
            raise PlanError(f"-x {file}: want a file with commands of gdb; there is none")
    return [file.resolve() for file in scripts]


def run_in_gdb(
    point: PointSpec, kernel: Path, workdir: Path, scripts: Sequence[Path], program: Path | None, code: BootCode | None
) -> Outcome | None:
    """Boot a lab in gdb, at the user's terminal; the outcome of its point, None if it was ended before its end.

    scripts: files of commands; with any, gdb ends after the last

    The lab begins with gdb's command `run`, as any program does.  Raises TestbedError.
    """
    debugger = gdb()
    with temporary.temporary(temporary.LABS) as home, own_processor() as cpu:
        memory_mb = memory.lab_mb(point)
        spec = machine.orders_of(home, point, workdir.resolve(), "point", [home, workdir.resolve()])
        more = [*boot_parameters.parameters(kernel, seccomp=False), f"TESTCTL_STEPS={home}"]
        lab_argv = machine.command_line(home, kernel, spec, memory_mb, program, cpu, code, more)
        at = lab_argv.index(str(kernel))
        console = home / machine.CONSOLE
        setup = home / "setup.gdb"
        t0_ns = machine.t0_ns(point) - machine.BOOT_NS
        setup.write_text(commands(lab_argv[at + 1 :], console, t0_ns), encoding="utf-8")
        argv = [*lab_argv[:at], debugger, "-q", "-nx", "-x", str(setup)]
        argv += [option for file in scripts for option in ("-x", str(file))]
        argv += ["-batch"] if scripts else []
        with _interrupts_are_gdbs():
            interact([*argv, str(kernel)], env=machine.lab_environment(home, memory_mb))
        return machine.outcome_of(home) if (home / machine.OUTCOME).is_file() else None


@contextmanager
def _interrupts_are_gdbs() -> Iterator[None]:
    """Ctrl-C stops the kernel in gdb, and not this program."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def commands(arguments: Sequence[str], console: Path, t0_ns: int) -> str:
    """gdb's commands before the user's: the kernel's own signals, its arguments, and the virtual time.

    t0_ns: of the traffic's beginning, on the kernel's clock
    """
    args = f"{shlex.join(arguments)} < /dev/null > {shlex.quote(str(console))} 2>&1"
    return _HELP.format(handles=f"handle {' '.join(SIGNALS)} nostop noprint pass", t0_ns=t0_ns, args=args).lstrip()
