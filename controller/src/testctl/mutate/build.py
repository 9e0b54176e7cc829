# SPDX-License-Identifier: Apache-2.0
"""One kernel with all mutants of a run: those that do not compile are left out."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from testctl_agent.spec.errors import PlanError

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
from testctl.system.subprocesses import run
from testctl.system.temporary import cache_entry, temporary

VARIANT, SECTION = "mutants", ".testctl_mutants"
_WHERE = re.compile(r"(?:^|\s|source/)((?:net|include|kernel|lib)/[\w./-]+):(\d+):\d+: (\w+)?", re.MULTILINE)
_UNDEFINED = re.compile(r"undefined reference to `(\w+)'")


def tree(kernel: str, directory: Path | None) -> KernelSource:
    """The source that mutants are written into: a directory, or the unpacked source of a version.

    Raises PlanError, TestbedError.
    """
    if directory is not None:
        return find(VARIANT, directory, variant=VARIANT)
    source = find(kernel)
    where = workplace.trees() / "unpacked" / f"{kernel}-{source.fingerprint()[:12]}"
    if not where.is_dir():
        cache_entry(where, lambda fresh: source.unpack(fresh / "linux"))
    return KernelSource(VARIANT, where / "linux", variant=VARIANT)


def read(source: KernelSource, names: Sequence[str]) -> dict[str, bytes]:
    """The texts of files of a tree.  Raises PlanError for one that is not there, or that the lab changes itself."""
    changed = {edit.file for edit in load_edits(checkout.lab() / "kernel" / workplace.EDITS)}
    texts = {}
    for name in names:
        path = source.origin / name
        if (
            not name.endswith(".c")
            or not path.is_file()
            or name.startswith(("/", ".."))
            or os.path.normpath(name) != name
        ):
            raise PlanError(f"file {name}: want a C file of {source.origin}, such as net/ipv4/tcp_input.c; got none")
        if name in changed:
            raise PlanError(f"file {name}: want one that lab/kernel/edits.yaml does not change for every lab")
        texts[name] = path.read_bytes()
    return texts


def build(
    source: KernelSource, texts: Mapping[str, bytes], mutants: Sequence[Mutant], progress: Progress, jobs: int
) -> tuple[Kernel, list[int]]:
    """The kernel, and the numbers of the mutants that are not in it: they do not compile, or the configuration leaves
    their code out.  Raises BuildError where the tree itself gives no kernel.
    """
    there = list(mutants)
    while True:
        files = sorted({mutant.site.file for mutant in there})
        mutated = replace(source, replaced=tuple((name, rewritten(name, texts[name], there)) for name in files))
        try:
            kernel = kernels.build(mutated, progress, jobs)
            break
        except BuildError:
            log = workplace.Workplace(workplace.kept(source.origin), VARIANT).log
            wrong = not_compiled(log.read_text(encoding="utf-8", errors="replace"), there, texts)
            if not wrong:
                raise
            there = [mutant for mutant in there if mutant not in wrong]
    if kept(kernel.directory) is None:
        self_test(kernel)
    compiled = _compiled(kernel)
    return kernel, [mutant.number for mutant in mutants if mutant.number not in compiled]


def _compiled(kernel: Kernel) -> set[int]:
    """The mutants that a kernel lists in its section."""
    with temporary("testctl-mutants-") as where:
        section, copy = where / "section", where / "copy"
        run(["objcopy", "--dump-section", f"{SECTION}={section}", str(kernel.binary), str(copy)])
        numbers = array("I", section.read_bytes())
    return set(numbers)


def not_compiled(log: str, mutants: Iterable[Mutant], texts: Mapping[str, bytes]) -> list[Mutant]:
    """The mutants at which a compiler reports errors, the innermost at each line.

    Where the linker lacks a function, whose calls the compiler removes without mutants: all mutants of the functions
    that call it.
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
