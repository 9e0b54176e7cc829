# SPDX-License-Identifier: Apache-2.0
"""The lab's kernel: found in the cache, or built with the project's congestion controls."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.lab.edits import apply_edits
from testctl.lab.inputs import Inputs, files
from testctl.lab.source import NAME, KernelSource
from testctl.system import checkout
from testctl.system.subprocesses import run, start, wait

FREE_BYTES = 4 << 30
"""A tree and its objects take about 2.5 GB while a kernel is built."""

UML_WRAPS = ("malloc", "free", "calloc")
"""Functions that arch/um already wraps; the build replaces its Makefile's variable as a whole."""

INPUTS = "inputs.json"
"""File in a kernel's directory: the inputs of its build."""

STEPS = 1000
"""Approximate number of lines that a build prints; used only for the progress display."""

CCACHE_SIZE = "2G"
"""A kernel's objects take about 0.1 GB there."""

Progress = Callable[[str, int, int], None]
"""(name of the step, steps done, total steps)"""


@dataclass(frozen=True)
class Kernel:
    """A built kernel.  `key` is a hash of all its inputs."""

    name: str
    key: str
    directory: Path

    @property
    def binary(self) -> Path:
        return self.directory / "linux"

    @property
    def built(self) -> bool:
        return self.binary.is_file()


def locate(name: str, inputs: Inputs) -> Kernel:
    """The kernel of these inputs, with its directory in the cache, whether it is built or not."""
    return Kernel(name, inputs.key, checkout.cache_dir() / "kernels" / f"{name}-{inputs.key}")


def build(source: KernelSource, progress: Progress, jobs: int = os.cpu_count() or 1) -> Kernel:
    """Build a kernel into the cache, unless it is there.

    Raises TestbedError with the compiler's first error; the incomplete build is removed.
    """
    inputs = Inputs.of(source)
    kernel = locate(source.name, inputs)
    with lock(kernel.directory.with_name(f"{kernel.directory.name}.lock")):
        if kernel.built:
            return kernel
        _check_space(kernel.directory.parent)
        work = kernel.directory.with_name(kernel.directory.name + ".building")
        shutil.rmtree(work, ignore_errors=True)
        try:
            work.mkdir(parents=True)
            progress(f"unpack {source.origin.name}", 0, STEPS)
            source.unpack(work / "source")
            _prepare(work / "source")
            _configure(work)
            _compile(work, source.name, progress, jobs)
            _keep(work, kernel.directory, inputs)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return kernel


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Lock: one build of a kernel at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _check_space(where: Path) -> None:
    free = shutil.disk_usage(where).free
    if free < FREE_BYTES:
        raise TestbedError(
            f"{where}: want {FREE_BYTES >> 30} GiB free to build a kernel; got {free / 2**30:.1f} GiB "
            "(another place: set TESTCTL_CACHE)"
        )


def _prepare(tree: Path) -> None:
    """Put lab/cc and lab/kernel into the copy of the tree and make the edits of edits.yaml."""
    home = tree / "net" / "ipv4" / "testctl"
    home.mkdir()
    for path in files():
        if path.suffix in {".c", ".h"} or path.name in {"Makefile", "Kconfig"}:
            shutil.copy(path, home)
    apply_edits(checkout.lab() / "kernel" / "edits.yaml", tree)


def _make(work: Path) -> list[str]:
    return ["make", "ARCH=um", f"O={work / 'objects'}"]


def _configure(work: Path) -> None:
    """Apply defconfig and the fragment, and check that make dropped no option."""
    tree, objects = work / "source", work / "objects"
    fragment = checkout.lab() / "kernel" / "fragment.config"
    objects.mkdir()
    run([*_make(work), "defconfig"], cwd=tree, timeout_s=300)
    config = objects / ".config"
    merge = [str(tree / "scripts/kconfig/merge_config.sh"), "-m", "-O", str(objects), str(config), str(fragment)]
    run(merge, cwd=tree, timeout_s=300)
    run([*_make(work), "olddefconfig"], cwd=tree, timeout_s=300)
    have = set(config.read_text(encoding="utf-8").splitlines())
    wanted = [line for line in fragment.read_text(encoding="utf-8").splitlines() if line.startswith("CONFIG_")]
    if lost := [line for line in wanted if line not in have]:
        raise TestbedError(f"{fragment}: this tree can't have {', '.join(lost)}")


def _compile(work: Path, name: str, progress: Progress, jobs: int) -> None:
    log = work / "build.log"
    names = (checkout.lab() / "kernel" / "wraps.txt").read_text(encoding="ascii").split()
    wraps = " ".join(f"-Wl,--wrap,{function}" for function in (*UML_WRAPS, *names))
    argv = [*_make(work), f"-j{jobs}", f"LINK_WRAPS={wraps}", *_compiler()]
    process = start(argv, log=log, env={**os.environ, **_remembered(work)}, cwd=work / "source")
    try:
        while process.poll() is None:
            progress(f"build kernel {name}", min(_lines(log), STEPS - 1), STEPS)
            wait(process, 0.5)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if process.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        first = next((line for line in lines if "error:" in line or "undefined reference" in line), lines[-1])
        raise TestbedError(f"kernel {name} does not build: {first.strip()}\n" + "\n".join(lines[-12:]))
    progress(f"build kernel {name}", STEPS, STEPS)


def _compiler() -> list[str]:
    """Arguments for ccache if it is installed: after a change only the changed files are compiled."""
    return ["CC=ccache gcc"] if shutil.which("ccache") else []


def _remembered(work: Path) -> dict[str, str]:
    """ccache's settings: its cache is next to the kernels, and independent of the path of the tree."""
    return {
        "CCACHE_DIR": str(checkout.cache_dir() / "ccache"),
        "CCACHE_BASEDIR": str(work),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_MAXSIZE": CCACHE_SIZE,
    }


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _keep(work: Path, where: Path, inputs: Inputs) -> None:
    """Move the kernel, its configuration and its inputs into the cache, atomically."""
    fresh = where.with_name(f"{where.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    binary = work / "objects" / "linux"
    run(["strip", "--strip-debug", "-o", str(fresh / "linux"), str(binary)])
    shutil.copy(work / "objects" / ".config", fresh / "config")
    shutil.copy(work / "build.log", fresh / "build.log")
    release = (work / "objects" / "include" / "config" / "kernel.release").read_text(encoding="ascii")
    (fresh / "release").write_text(release, encoding="ascii")
    (fresh / INPUTS).write_text(inputs.to_json(), encoding="utf-8")
    durable.publish(fresh, where)


def name_file(name: str) -> Path:
    """The file with the key of a kernel that was built from the user's tree.  Raises PlanError."""
    if not re.fullmatch(NAME, name):
        raise PlanError(f"kernel {name!r}: want a name of letters, digits, '.', '_', '-' (at most 41)")
    return checkout.cache_dir() / "kernels" / f"{name}.name"


def remember(kernel: Kernel) -> None:
    """Register the name of a kernel built from the user's tree for a plan's `kernel` tuple."""
    durable.write(name_file(kernel.name), kernel.directory.name.encode())


def by_name(name: str) -> Kernel | None:
    """The kernel built under this name from the user's tree, if any.

    Raises PlanError for an invalid name, TestbedError if the registered kernel is not in the cache.
    """
    file = name_file(name)
    try:
        directory = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    key = directory.removeprefix(f"{name}-")
    if directory == key or not re.fullmatch("[0-9a-f]{16}", key):
        raise TestbedError(f"{file}: want {name}-<16 hexadecimal digits>; got {directory[:80]!r}; build it again")
    kernel = Kernel(name, key, file.parent / directory)
    return kernel if kernel.built else None
