# SPDX-License-Identifier: Apache-2.0
"""The sysctls of a host in the lab, read once from the kernel itself, before any point is run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from testctl_agent.params.host.sysctl import SPEC
from testctl_agent.params.sysctls import KNOWN, device_of
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.lab.kernel import Kernel
from testctl.plan import Point
from testctl.system.process_groups import end
from testctl.system.subprocesses import start, wait

FILE = "sysctls"
"""File in the directory of a built kernel: one name per line."""
_BEGIN, _END = "sysctls begin", "sysctls end"
_BOOT_S = 60
_INIT = f"""#!/bin/sh
mount -t proc proc /proc
echo {_BEGIN}
unshare --net sh -c 'cd /proc/sys && find net/ipv4 net/core -type f'
echo {_END}
exec sh -c 'echo o > /proc/sysrq-trigger; sleep 60'
"""


def check_sysctls(points: Iterable[Point], kernel: Kernel) -> None:
    """Raises PlanError if a host sets a sysctl that this kernel does not have in a network namespace."""
    missing = sorted(set(_wanted(points)) - _of(kernel))
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise PlanError(
            f"{missing[0]}{more}: kernel {kernel.name} has no such sysctl, or only in its first network namespace, "
            "and a lab's hosts are in others"
        )


def _wanted(points: Iterable[Point]) -> Iterator[str]:
    """Full names of the sysctls that points set; a device's name is replaced by "default"."""
    for point in points:
        for host in point.topology.hosts:
            yield from (full for name in point.settings.get(host, {}) if (full := full_name(name)))


def full_name(name: str) -> str:
    """The name of a sysctl as the kernel lists it, a device's name replaced by "default"; "" for what is none."""
    if not SPEC.matches(name):
        return ""
    full = f"net.ipv4.{name}" if name in KNOWN else name
    device = device_of(full.removeprefix("net.ipv4."))
    return full.replace(f".{device}.", ".default.") if device else full


def listed(kernel: Kernel) -> frozenset[str]:
    """The sysctls of a kernel that has listed them before; nothing for one that has not."""
    file = kernel.directory / FILE
    return frozenset(file.read_text(encoding="ascii").split()) if file.is_file() else frozenset()


@cache
def _of(kernel: Kernel) -> frozenset[str]:
    file = kernel.directory / FILE
    if not file.is_file():
        durable.write(file, "".join(f"{name}\n" for name in sorted(_asked(kernel))).encode())
    return frozenset(file.read_text(encoding="ascii").split())


def _asked(kernel: Kernel) -> set[str]:
    """Boot the kernel with only a shell and list its sysctls.  Raises TestbedError if it lists none."""
    with tempfile.TemporaryDirectory(prefix="testctl-sysctls-") as name:
        home = Path(name)
        init = home / "init"
        init.write_text(_INIT, encoding="ascii")
        init.chmod(0o755)
        argv = [
            str(kernel.binary), "mem=128M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}",
            "con0=fd:0,fd:1", "con=null", "quiet", "panic=-1", f"uml_dir={home}", "time-travel=inf-cpu",
        ]  # fmt: skip
        log = home / "console.log"
        process = start(argv, log=log, env={"TMPDIR": name, "HOME": name, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        if not wait(process, _BOOT_S):
            end(process)
        output = log.read_text(encoding="utf-8", errors="replace")
    lines = output.replace("\r", "").splitlines()
    if _BEGIN not in lines or _END not in lines:
        raise TestbedError(f"kernel {kernel.name} does not list its sysctls: {output[-300:]}")
    listed = lines[lines.index(_BEGIN) + 1 : lines.index(_END)]
    return {line.replace("/", ".") for line in listed if line.startswith("net/")}
