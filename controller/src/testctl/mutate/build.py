# SPDX-License-Identifier: Apache-2.0
"""One kernel with all mutants of a run: those that do not compile are left out."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from testctl_agent.spec.errors import PlanError
from testctl_agent.system import durable

from testctl.execution.kernel_test import self_test
from testctl.lab import kernel as kernels
from testctl.lab import workplace
from testctl.lab.edits import load_edits
from testctl.lab.kernel import BuildError, Kernel
from testctl.lab.make import Progress
from testctl.lab.self_test import kept
from testctl.lab.source import KernelSource, find
from testctl.mutate.c_source import Source, text_of
from testctl.mutate.draw import Mutant, rewritten
from testctl.system import checkout

VARIANT = "mutants"
_WHERE = re.compile(r"(?:^|\s|source/)((?:net|include|kernel|lib)/[\w./-]+):(\d+):\d+: (error|note|warning)?", re.MULTILINE)

_UNDEFINED = re.compile(r"undefined reference to `(\w+)'")


def tree(kernel: str, directory: Path | None) -> KernelSource:
    """The source that mutants are written into: a directory, or the unpacked source of a version.

    Raises PlanError, TestbedError.
    """
    if directory is not None:
        return find(VARIANT, directory, variant=VARIANT)
    source = find(kernel)
    where = workplace.trees() / f"{kernel}-{source.fingerprint()[:12]}.unpacked"
    with workplace.lock(where.with_name(f"{where.name}.lock")):
        if not where.is_dir():
            fresh = where.with_name(f"{where.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            source.unpack(fresh)
            durable.publish(fresh, where)
    return KernelSource(VARIANT, where, variant=VARIANT)


def read(source: KernelSource, names: Sequence[str]) -> dict[str, bytes]:
    """The texts of files of a tree.  Raises PlanError for one that is not there, or that the lab changes itself."""
    changed = {edit.file for edit in load_edits(checkout.lab() / "kernel" / workplace.EDITS)}
    texts = {}
    for name in names:
        path = source.origin / name
        if not name.endswith(".c") or not path.is_file() or os.path.normpath(name) != name:
            raise PlanError(f"--files {name}: want a C file below {source.origin}, such as net/ipv4/tcp_input.c")
        if name in changed:
            raise PlanError(f"--files {name}: want one that lab/kernel/edits.yaml does not change")
        texts[name] = path.read_bytes()
    return texts


def build(
    source: KernelSource, texts: dict[str, bytes], mutants: Sequence[Mutant], progress: Progress, jobs: int
) -> tuple[Kernel, list[Mutant]]:
    """The kernel, and those of the mutants that do not compile.  Raises BuildError for any other reason."""
    dropped: list[Mutant] = []
    while True:
        there = [mutant for mutant in mutants if mutant not in dropped]
        files = sorted({mutant.site.file for mutant in there})
        mutated = replace(source, replaced=tuple((name, rewritten(name, texts[name], there)) for name in files))
        try:
            kernel = kernels.build(mutated, progress, jobs)
        except BuildError:
            log = workplace.Workplace(workplace.kept(source.origin), VARIANT).log.read_text(errors="replace")
            wrong = not_compiled(log, there, texts)
            if not wrong:
                raise
            dropped += wrong
            continue
        if kept(kernel.directory) is None:
            self_test(kernel)
        return kernel, dropped


def not_compiled(log: str, mutants: Iterable[Mutant], texts: dict[str, bytes]) -> list[Mutant]:
    """The mutants at which a compiler reports errors, the innermost at each line.

    Where the linker lacks a function, whose calls the compiler removes without mutants: those of the functions that
    call it.
    """
    by_file: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_file.setdefault(mutant.site.file, []).append(mutant)
    wrong: list[Mutant] = []
    is_open = False  # an error of a macro in a header: the lines below it name the file
    for name, line, what in _WHERE.findall(log):
        is_open = what == "error" or (is_open and what == "note")
        if is_open and name in by_file:
            at = [m for m in by_file[name] if m.site.line <= int(line) <= last_line(m, texts[name])]
            at.sort(key=lambda m: (not m.site.instead, m.site.end - m.site.start))
            size = at[0].site.end - at[0].site.start if at else 0
            wrong += [m for m in at if m.site.end - m.site.start == size or m.site.instead]
            is_open = False
    for symbol in set(_UNDEFINED.findall(log)):
        for name, there in by_file.items():
            for function, node in Source(name, texts[name]).functions():
                if re.search(rf"\b{symbol}\(", text_of(node)):
                    wrong += [mutant for mutant in there if mutant.site.function == function]
    return list(dict.fromkeys(wrong))


def last_line(mutant: Mutant, text: bytes) -> int:
    return mutant.site.line + text.count(b"\n", mutant.site.start, mutant.site.end)
