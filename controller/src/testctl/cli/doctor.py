# SPDX-License-Identifier: Apache-2.0
"""Checks what a machine needs, and names the command that installs it."""

from __future__ import annotations

import platform
import shutil
import sys

from testctl_agent.spec.errors import TestctlError
from testctl_agent.system import tgen_program

from testctl.lab.built import kernel_for
from testctl.lab.self_test import kept
from testctl.lab.source import DEBIAN_SOURCES, tarball_of
from testctl.system import checkout
from testctl.testbeds.choose import TESTBEDS
from testctl.testbeds.requirements import Diagnosis, install, where

PROGRAMS = {
    "ip": "iproute2",
    "bridge": "iproute2",
    "ethtool": "ethtool",
    "tcpdump": "tcpdump",
    "iperf3": "iperf3",
    "setpriv": "util-linux",
    "taskset": "util-linux",
}
"""Program → the Debian package that has it."""

KERNEL_PROGRAMS = {
    "gcc": "build-essential",
    "make": "build-essential",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "xz": "xz-utils",
}
"""Programs that build a kernel; not needed where one is built."""

KERNELS = ("6.12", "6.1")


def examine() -> list[Diagnosis]:
    """Look at everything; never raises for something missing."""
    kernels = _kernels()
    built = any(diagnosis.ok and diagnosis.what == f"lab kernel {KERNELS[0]}" for diagnosis in kernels)
    packages = PROGRAMS if built else KERNEL_PROGRAMS | PROGRAMS
    paths = {program: where(program) for program in packages}
    programs = [
        Diagnosis(program, bool(path), path or "not found", install(packages[program]))
        for program, path in paths.items()
    ]
    tgen = tgen_program.found()
    return [
        *_machine(),
        *programs,
        *kernels,
        Diagnosis("tgen", bool(tgen), tgen or "not built", "install testctl-agent again (make setup)"),
        *_testbeds(),
    ]


def _machine() -> list[Diagnosis]:
    cache = checkout.cache_dir()
    place = next(parent for parent in (cache, *cache.parents) if parent.exists())
    free_gib = shutil.disk_usage(place).free / 2**30
    return [
        Diagnosis("processor", platform.machine() == "x86_64", platform.machine(), "use an x86-64 machine"),
        Diagnosis("python", sys.version_info >= (3, 11), platform.python_version(), install("python3 python3-venv")),
        Diagnosis(
            "space for kernels",
            free_gib > 4,
            f"{free_gib:.0f} GiB free at {place}",
            "set TESTCTL_CACHE to a place with 4 GiB",
        ),
    ]


def _kernels() -> list[Diagnosis]:
    findings = []
    for name in KERNELS:
        optional = name != KERNELS[0]
        tarball = DEBIAN_SOURCES / f"linux-source-{name}.tar.xz"
        try:
            kernel, got = kernel_for(name), ""
        except TestctlError as error:
            kernel, got = None, str(error).partition("; build it with")[0]
        if kernel is None and tarball_of(name) is None:
            fix = install(f"linux-source-{name}")
            findings.append(Diagnosis(f"source of kernel {name}", False, f"no {tarball}", fix, optional))
        got = str(kernel.binary) if kernel else got
        findings.append(Diagnosis(f"lab kernel {name}", kernel is not None, got, f"testctl lab build {name}", optional))
        if kernel is not None:
            tested = kept(kernel.directory)
            got, good = (tested.summary, tested.ok) if tested else ("not made", False)
            fix = f"testctl lab test {kernel.directory.name}"
            findings.append(Diagnosis(f"self-test of kernel {name}", good, got, fix, optional or tested is None))
    return findings


def _testbeds() -> list[Diagnosis]:
    """What each testbed wants in addition to the lab's needs."""
    findings: list[Diagnosis] = []
    for name in TESTBEDS.names():
        try:
            findings += TESTBEDS.module(name).testbed(name).requirements()
        except TestctlError as error:
            findings.append(Diagnosis(f"testbed {name}", False, str(error), "make setup", optional=True))
    return findings
