# SPDX-License-Identifier: Apache-2.0
"""The sysctls of a host and the congestion controls that a built kernel has.

Read once from the kernel itself, before any point is run, and kept in its directory.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import pairwise

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import durable

from testctl.lab.kernel import Kernel
from testctl.system.process_groups import end
from testctl.system.subprocesses import start, wait
from testctl.system.temporary import LABS, temporary

SYSCTLS, FIXED, CCS = "sysctls", "fixed_sysctls", "ccs"
"""Files in the directory of a built kernel, one name per line; FIXED: the sysctls that a host can only read, or only
write."""
_LISTS = (SYSCTLS, FIXED, CCS)
_END = "lists end"
_BOOT_S = 60
_INIT = f"""#!/bin/sh
mount -t proc proc /proc
echo {SYSCTLS}
unshare --net sh -c 'cd /proc/sys && find net/ipv4 net/core -type f'
echo {FIXED}
unshare --net sh -c 'cd /proc/sys && find net/ipv4 net/core -type f ! -perm -600'
echo {CCS}
cat /proc/sys/net/ipv4/tcp_available_congestion_control
echo {_END}
exec sh -c 'echo o > /proc/sysrq-trigger; sleep 60'
"""


def listed(kernel: Kernel, what: str) -> frozenset[str]:
    """The SYSCTLS, FIXED or CCS of a kernel as it listed them before; nothing if it did not."""
    file = kernel.directory / what
    return frozenset(file.read_text(encoding="ascii").split()) if file.is_file() else frozenset()


def keep(kernel: Kernel, what: str, names: Iterable[str]) -> None:
    durable.write(kernel.directory / what, "".join(f"{name}\n" for name in sorted(names)).encode())


@cache
def has(kernel: Kernel, what: str) -> frozenset[str]:
    """The SYSCTLS, FIXED or CCS of a kernel, which is booted for it once.  Raises TestbedError if it lists none."""
    if not listed(kernel, what):
        for list_, names in _read_from(kernel).items():
            keep(kernel, list_, names)
    return listed(kernel, what)


def _read_from(kernel: Kernel) -> dict[str, set[str]]:
    """Boot the kernel with only a shell and list what it has.  Raises TestbedError if it does not."""
    with temporary(LABS) as home:
        init = home / "init"
        init.write_text(_INIT, encoding="ascii")
        init.chmod(0o755)
        argv = [
            "setpriv", "--pdeathsig", "KILL", str(kernel.binary),
            "mem=128M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}",
            "con0=fd:0,fd:1", "con=null", "quiet", "panic=-1", f"uml_dir={home}", "time-travel=inf-cpu",
        ]  # fmt: skip
        log = home / "console.log"
        env = {"TMPDIR": str(home), "HOME": str(home), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        process = start(argv, log=log, env=env)
        if not wait(process, _BOOT_S):
            end(process)
        output = log.read_text(encoding="utf-8", errors="replace")
    lines = output.replace("\r", "").splitlines()
    if not all(mark in lines for mark in (*_LISTS, _END)):
        raise TestbedError(f"kernel {kernel.name} does not list its sysctls: {output[-300:]}")
    marks = [lines.index(mark) for mark in (*_LISTS, _END)]
    sections = [" ".join(lines[begin + 1 : end]).split() for begin, end in pairwise(marks)]
    return {list_: {name.replace("/", ".") for name in names} for list_, names in zip(_LISTS, sections, strict=True)}
