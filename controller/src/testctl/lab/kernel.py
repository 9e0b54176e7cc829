# SPDX-License-Identifier: Apache-2.0
"""The lab's kernel: taken from the cache, or built with the project's congestion controls."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.lab import coverage, make, workplace
from testctl.lab.edits import apply_edits
from testctl.lab.inputs import Inputs, files, variant_files, variant_sources
from testctl.lab.make import Progress
from testctl.lab.source import NAME, KernelSource
from testctl.lab.workplace import EDITS, Workplace, lock
from testctl.system import checkout
from testctl.system.subprocesses import ENDS_WITH_US, run

UML_WRAPS = ("malloc", "free", "calloc")
"""Functions that arch/um already wraps; the build replaces its Makefile's variable as a whole."""

INPUTS = "inputs.json"
"""File in a kernel's directory: the inputs of its build."""

EDITS_REPORT = "edits.txt"
"""File in a kernel's directory: a line about each edit of edits.yaml, made or not needed."""

LACKING = "lacking.txt"
"""File in the directory of a variant: the options of its configuration that its tree can't have."""

CHANGED = "changed.txt"
"""File in the directory of a kernel of the user's tree: its files that changed since the last build of that tree and
are compiled, the one changed last first."""

STEPS = 1270
"""Approximate number of lines that a build prints; used only for the progress display."""


class BuildError(TestbedError):
    """A tree that gives no kernel of the lab: an edit or the configuration does not fit, or it does not compile."""


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

    @property
    def release(self) -> str:
        """Such as 6.12.117; "" if it is not known."""
        file = self.directory / "release"
        return file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""


def directory() -> Path:
    """The directory of the built kernels, in the cache."""
    return checkout.cache_dir() / "kernels"


def locate(name: str, inputs: Inputs) -> Kernel:
    """The kernel of these inputs, with its directory in the cache, whether it is built or not."""
    return Kernel(name, inputs.key, directory() / f"{name}-{inputs.key}")


def build(source: KernelSource, progress: Progress, jobs: int = os.cpu_count() or 1) -> Kernel:
    """Build a kernel into the cache, unless it is there.

    A tree of the user's is copied into the cache, where its objects are kept: the next build of it, or of a revision
    of it, compiles what changed.  Raises BuildError with the compiler's first error; no incomplete kernel is kept.
    """
    inputs = Inputs.of(source)
    kernel = locate(source.name, inputs)
    other = f"wait for kernel {source.name}, which another process builds"
    with lock(kernel.directory.with_name(f"{kernel.directory.name}.lock"), lambda: progress(other, 0, STEPS)):
        if kernel.built:
            return kernel
        make.check_space(kernel.directory.parent)
        with workplace.of(source, kernel.directory) as work:
            progress(f"{'copy' if source.is_tree else 'unpack'} {source.title}", 0, STEPS)
            changed = work.bring(source)
            try:
                put_sources(work, source.variant)
                edits = apply_edits(checkout.lab() / "kernel" / EDITS, work.source, work.pristine)
                work.edits.write_text("\n".join(edits) + "\n", encoding="utf-8")
                _replace_files(work, source)
                _configure(work, inputs, source.variant)
                _compile(work, source, progress, jobs)
            except TestbedError as error:
                raise BuildError(str(error)) from error
            _keep(work, kernel.directory, inputs, changed, source.variant)
    return kernel


def _own(work: Workplace) -> Path:
    """Where the project's own sources are in the copy of the tree."""
    return work.source / "net" / "ipv4" / "testctl"


def put_sources(work: Workplace, variant: str) -> None:
    """Put lab/cc, lab/kernel and the C files of a variant into the copy of the tree, and remove others."""
    home = _own(work)
    home.mkdir(parents=True, exist_ok=True)
    sources = [path for path in files() if path.suffix in {".c", ".h", ".sh"} or path.name in {"Makefile", "Kconfig"}]
    sources += (more := variant_sources(variant))
    for path in home.iterdir():
        if path.name not in {source.name for source in sources}:
            path.unlink()
    for path in sources:
        if not (home / path.name).is_file() or not filecmp.cmp(path, home / path.name, shallow=False):
            shutil.copyfile(path, home / path.name)
    if more:  # make reads Kbuild instead of Makefile where there is one
        objects = " ".join(path.with_suffix(".o").name for path in more if path.suffix == ".c")
        text = f"include $(srctree)/net/ipv4/testctl/Makefile\nobj-y += {objects}\n"
        (home / "Kbuild").write_text(text, encoding="ascii")


def _replace_files(work: Workplace, source: KernelSource) -> None:
    for name, text in source.replaced:
        if not (path := work.source / name).is_file() or path.read_bytes() != text:
            durable.write(path, text)


def _make(work: Workplace) -> list[str]:
    return [*ENDS_WITH_US, "make", "ARCH=um", f"O={work.objects}"]


def _configure(work: Workplace, inputs: Inputs, variant: str) -> None:
    """Apply defconfig and the fragments, unless the objects have been configured so.

    Raises TestbedError if make dropped an option of fragment.config; options of optional.config may be unknown.
    A variant's options that a tree does not have are listed in a file (lacking()).
    """
    more = variant_files(variant)
    parts = [name for name in inputs.files if name.endswith((".config", "/Kconfig", f"/{EDITS}"))]
    stamp = "\n".join([inputs.compiler, *(inputs.files[name] for name in sorted(parts))])
    if work.configured.is_file() and work.configured.read_text(encoding="utf-8") == stamp:
        return
    work.configured.unlink(missing_ok=True)
    fragment, optional = (checkout.lab() / "kernel" / f"{name}.config" for name in ("fragment", "optional"))
    work.objects.mkdir(exist_ok=True)
    run([*_make(work), "defconfig"], cwd=work.source, timeout_s=300)
    make.merge(_make(work), work.source, work.objects, (fragment, optional, *more))
    config = work.objects / ".config"
    have = set(config.read_text(encoding="utf-8").splitlines())
    of_variant = {line.partition("=")[0] for file in more for line in make.options(file)}
    wanted = [line for line in make.options(fragment) if line.partition("=")[0] not in of_variant]
    if lost := [line for line in wanted if line not in have]:
        raise TestbedError(f"{fragment}: this tree can't have {', '.join(lost)}")
    without = [line for file in more for line in make.options(file) if line not in have]
    (work.objects / LACKING).write_text("".join(f"{line}\n" for line in without), encoding="utf-8")
    work.configured.write_text(stamp, encoding="utf-8")


def lacking(kernel: Kernel) -> list[str]:
    """The options of its variant that a kernel lacks, because its tree can't have them."""
    file = kernel.directory / LACKING
    return file.read_text(encoding="utf-8").split() if file.is_file() else []


def _compile(work: Workplace, source: KernelSource, progress: Progress, jobs: int) -> None:
    for name_ in ("linux", "vmlinux"):  # make does not see that what is wrapped has changed
        (work.objects / name_).unlink(missing_ok=True)
    names = (checkout.lab() / "kernel" / "wraps.txt").read_text(encoding="ascii").split()
    names += coverage.WRAPS if source.variant == coverage.VARIANT else ()
    wraps = " ".join(f"-Wl,--wrap,{function}" for function in (*UML_WRAPS, *names))
    counted = coverage.make_arguments(work.source) if source.variant == coverage.VARIANT else ()
    argv = [*_make(work), f"-j{jobs}", f"LINK_WRAPS={wraps}", *counted]
    if source.is_tree or source.variant:
        argv += make.compiler()
    else:  # no header changes afterwards: the common ones are compiled with the first file (lab/kernel/precompiled.sh)
        argv += [*make.compiler("sh", f"{_own(work)}/precompiled.sh"), "kernel/fork.o", "all"]
    env = make.remembered(work.home)
    make.build(argv, f"kernel {source.name}", progress, STEPS, log=work.log, env=env, cwd=work.source)


def _keep(work: Workplace, where: Path, inputs: Inputs, changed: Sequence[str] | None, variant: str) -> None:
    """Put the kernel, its configuration and its inputs into the cache, atomically; a variant with its symbols."""
    fresh = where.with_name(f"{where.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    symbols = ["objcopy", "--compress-debug-sections"] if variant else ["objcopy", "--strip-debug"]
    run([*symbols, str(work.objects / "linux"), str(fresh / "linux")], timeout_s=600)
    if variant:
        shutil.copy(work.objects / LACKING, fresh / LACKING)
    if variant == coverage.VARIANT:
        coverage.keep_notes(work.source, work.objects, fresh)
    shutil.copy(work.objects / ".config", fresh / "config")
    shutil.copy(work.log, fresh / "build.log")
    shutil.copy(work.edits, fresh / EDITS_REPORT)
    release = (work.objects / "include" / "config" / "kernel.release").read_text(encoding="ascii")
    (fresh / "release").write_text(release, encoding="ascii")
    (fresh / INPUTS).write_text(inputs.to_json(), encoding="utf-8")
    if changed is not None:
        (fresh / CHANGED).write_text("".join(f"{name}\n" for name in work.compiled(changed)), encoding="utf-8")
    durable.publish(fresh, where)


def name_file(name: str) -> Path:
    """The file with the key of a kernel that was built from the user's tree.  Raises PlanError."""
    if not re.fullmatch(NAME, name):
        raise PlanError(f"kernel {name!r}: want a name of letters, digits, '.', '_', '-' (at most 41)")
    return directory() / f"{name}.name"


def remember(kernel: Kernel) -> None:
    """Register the name of a kernel built from the user's tree for a plan's `kernel` tuple."""
    durable.write(name_file(kernel.name), kernel.directory.name.encode())


def by_name(name: str) -> Kernel | None:
    """The kernel built under this name from the user's tree, if any.

    Raises PlanError for an invalid name, TestbedError if the registered kernel is not in the cache.
    """
    file = name_file(name)
    try:
        registered = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    key = registered.removeprefix(f"{name}-")
    if registered == key or not re.fullmatch("[0-9a-f]{16}", key):
        raise TestbedError(f"{file}: want {name}-<16 hexadecimal digits>; got {registered[:80]!r}; build it again")
    kernel = Kernel(name, key, file.parent / registered)
    return kernel if kernel.built else None
