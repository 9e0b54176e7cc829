# SPDX-License-Identifier: Apache-2.0
"""What builds of kernels share: their configuration from fragments, and make, with its progress and its first error."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

from testctl.system import checkout
from testctl.system.subprocesses import run, start, wait

FREE_BYTES = 4 << 30
"""A tree and its objects take about 2.5 GB while a kernel is built."""

CCACHE_SIZE = "2G"
"""A kernel's objects take about 0.1 GB there."""

CONFIGURE_S = 600.0

Progress = Callable[[str, int, int], None]
"""(name of the step, steps done, total steps)"""

_ERROR = re.compile(r"error:|undefined reference|\*\*\* (?!\[|Waiting)")
"""The compiler's, the linker's or make's."""


def check_space(where: Path) -> None:
    """Raises TestbedError where the disk lacks the space for a build."""
    free = shutil.disk_usage(where).free
    if free < FREE_BYTES:
        raise TestbedError(
            f"{where}: want {FREE_BYTES >> 30} GiB free to build a kernel; got {free / 2**30:.1f} GiB "
            "(another place: set TESTCTL_CACHE)"
        )


def merge(make: Sequence[str], source: Path, objects: Path, fragments: Iterable[Path]) -> None:
    """Put fragments over the .config of the objects, the last first, and complete it."""
    argv = [str(source / "scripts/kconfig/merge_config.sh"), "-m", "-O", str(objects), str(objects / ".config")]
    run([*argv, *map(str, fragments)], cwd=objects, timeout_s=CONFIGURE_S)  # it writes files where it is run
    run([*make, "olddefconfig"], cwd=source, timeout_s=CONFIGURE_S)


def options(file: Path) -> list[str]:
    """The lines of a fragment that set an option."""
    return [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("CONFIG_")]


def compiler(*before: str) -> list[str]:
    """Arguments for a compiler, by ccache if it is installed: after a change only the changed files are compiled."""
    return ["CC=" + " ".join([*before, *(["ccache"] if shutil.which("ccache") else []), "gcc"])]


def remembered(work: Path) -> dict[str, str]:
    """ccache's settings: its cache is next to the kernels, and independent of the path of the tree."""
    return {
        "CCACHE_DIR": str(checkout.cache_dir() / "ccache"),
        "CCACHE_BASEDIR": str(work),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_DEPEND": "1",  # trust make's list of headers: nothing is preprocessed twice (a fifth of a build's time)
        "CCACHE_SLOPPINESS": "pch_defines,time_macros",  # else nothing with precompiled headers is remembered
        "CCACHE_PCH_EXTSUM": "1",
        "CCACHE_MAXSIZE": CCACHE_SIZE,
    }


def build(
    argv: Sequence[str], what: str, progress: Progress, steps: int, *, log: Path, env: Mapping[str, str], cwd: Path
) -> None:
    """Run make to its end; what it prints goes to a file, and each line of that counts as a step.

    what: as errors name it.  Raises TestbedError with the first error.
    """
    process = start(argv, log=log, env={**os.environ, **env}, cwd=cwd)
    try:
        while process.poll() is None:
            progress(f"build {what}", min(log.read_bytes().count(b"\n"), steps - 1), steps)
            wait(process, 0.5)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if process.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() or ["make printed nothing"]
        first = next((line for line in lines if _ERROR.search(line)), lines[-1])
        raise TestbedError(f"{what} does not build: {first.strip()}\n" + "\n".join(lines[-12:]))
    progress(f"build {what}", steps, steps)
