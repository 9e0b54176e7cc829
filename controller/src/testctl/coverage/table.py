# SPDX-License-Identifier: Apache-2.0
"""What the points of a run executed of each source file of their kernel."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.core.point import PointSpec
from testctl.coverage.graph import Counts, executed
from testctl.coverage.notes import Function, counters_of, functions_of
from testctl.lab.built import built, by_key
from testctl.lab.coverage import NOTES, SOURCES
from testctl.lab.kernel import Kernel
from testctl.results import Run, RunPoint, layout

Key = TypeVar("Key")
_LENGTHS = struct.Struct("<HI")
_BEFORE = "before/"
"""lab/boot/coverage.py: two lengths before each entry, and the prefix of the counters before the traffic."""
_STAMP = slice(8, 12)
"""Of notes and counters: gcc's of the same compilation."""
MAX_BYTES = 1 << 26
"""Of a point's counters; the kernel's are 2 MB."""


@dataclass
class SourceFile:
    """A source file.  Counts are of each point.

    lines      number -> executions of the block in the line that was executed most
    branches   (line, block's place in its function, arc's) -> executions: ways that can be taken
    functions  (name, line) -> executions
    ends       a function's first line -> its last
    """

    name: str
    lines: dict[int, Counts] = field(default_factory=dict)
    branches: dict[tuple[int, str, int], Counts] = field(default_factory=dict)
    functions: dict[tuple[str, int], Counts] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    @property
    def reached_lines(self) -> set[int]:
        """Lines that a point executed."""
        return {number for number, counts in self.lines.items() if counts.any()}

    @property
    def unreached(self) -> list[int]:
        """Lines that no point executed."""
        return sorted(set(self.lines) - self.reached_lines)

    @property
    def reached(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """(those that a point executed, all) of lines, branches, functions."""
        branches, functions = (sum(counts.any() for counts in of.values()) for of in (self.branches, self.functions))
        return (
            (len(self.reached_lines), len(self.lines)),
            (int(branches), len(self.branches)),
            (int(functions), len(self.functions)),
        )


@dataclass(frozen=True)
class Coverage:
    """points: ids, in the order of the counts; files: by their names in the kernel's tree."""

    kernel: str
    points: Sequence[str]
    files: Mapping[str, SourceFile]
    sources: Path

    def text(self, file: str) -> list[str]:
        path = self.sources / file
        return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []


def coverage_of(
    *runs: Run, kernel: Kernel | None = None, name: str | None = None, since_boot: bool = False
) -> Coverage:
    """What the traffic of the points of one or several runs executed.

    kernel      the runs', if not the one that was built last of its name
    name        of the kernel, where points have several
    since_boot  count what was executed before the traffic too

    Raises PlanError for a run without points on a kernel that counts, TestbedError if that kernel is gone.
    """
    counting: list[tuple[RunPoint, dict[str, list[Path]]]] = []
    for run in runs:
        those = [(point, of) for point in run.points if (of := _files(point)) and (not name or name in of)]
        if not those:
            raise PlanError(
                f"{run.path}: want points on a kernel that counts what it executes, as of testctl run PLAN "
                f"--kernel 6.12-coverage; got none{f' on {name}' if name else ''}"
            )
        counting += those
    points = [point for point, _ in counting]
    names = [name] if name else sorted({of_kernel for _, of in counting for of_kernel in of})
    where = ", ".join(str(run.path) for run in runs)
    if len(names) > 1:
        raise PlanError(f"{where}: --kernel: want one of {', '.join(names)}, which counted; got none")
    # Runs that --affected-by keeps are named by the key of their kernel: a tree's, which has no name of its own.
    kernel = kernel or built(names[0]) or by_key(names[0], runs[0].path.name.partition("-")[0])
    if kernel is None:
        raise TestbedError(f"kernel {names[0]}: not built here any more, so its counters can't be read")
    counters = [[_counters(path) for path in of[names[0]]] for _, of in counting]
    prefixes = ("", _BEFORE) if since_boot else ("",)
    files: dict[str, SourceFile] = {}
    for notes in sorted((kernel.directory / NOTES).rglob("*.gcno")):
        compiled_as = str(notes.relative_to(kernel.directory / NOTES).with_suffix(""))
        functions = functions_of(compiled := notes.read_bytes(), str(notes))
        of_points: list[list[Mapping[tuple[int, int, int], Sequence[int]]]] = []
        for point, of_kernels in zip(points, counters, strict=True):
            if any(data.get(compiled_as, compiled)[_STAMP] != compiled[_STAMP] for data in of_kernels):
                raise TestbedError(f"{point.path}: {compiled_as} was counted by another build of kernel {names[0]}")
            counted_in = [data[prefix + compiled_as] for data in of_kernels for prefix in prefixes
                          if prefix + compiled_as in data]  # fmt: skip
            of_points.append([counters_of(data, f"{point.path}: {compiled_as}") for data in counted_in])
        for function in functions:
            counted = sum(arc.counted for arc in function.arcs)
            executions = np.zeros((len(points), counted), np.int64)
            for row, of_point in zip(executions, of_points, strict=True):
                for values in of_point:
                    column = values.get(function.key, (0,) * counted)
                    if len(column) != counted:
                        raise TestbedError(
                            f"{where}: {compiled_as}: want {counted} counters of {function.name}(); got {len(column)}"
                        )
                    row += column
            add_function(files, function, executions.T)
    return Coverage(names[0], [point.id for point in points], files, kernel.directory / SOURCES)


def _files(point: RunPoint) -> dict[str, list[Path]]:
    """The files with the counters of each of a point's kernels that counts: one, or one for each part on it."""
    try:
        spec = PointSpec.from_json(point.point)
    except ValueError as error:
        raise TestbedError(f"{point.path / layout.POINT}: {error}") from error
    files: dict[str, list[Path]] = {}
    for kernel, prefix in [(part.kernel, f"{part.entities[0]}.") for part in spec.parts] or [(spec.kernel, "")]:
        path = point.path / layout.safe_name(f"{prefix}{layout.COVERAGE}", "file")
        if path.is_file():
            files.setdefault(kernel, []).append(path)
    return files


def _counters(path: Path) -> dict[str, bytes]:
    """Object -> its counters, by its name in the kernel's tree without a suffix."""
    objects, at = {}, 0
    try:
        packed = zlib.decompressobj()
        data = packed.decompress(path.read_bytes(), MAX_BYTES)
        if not packed.eof:
            raise TestbedError(
                f"{path}: want counters of a kernel, at most {MAX_BYTES} bytes; the file is cut or larger"
            )
        while at < len(data):
            name_bytes, count = _LENGTHS.unpack_from(data, at)
            at += _LENGTHS.size
            name = data[at : at + name_bytes].decode()
            prefix = _BEFORE if name.startswith(_BEFORE) else ""
            objects[prefix + _in_tree(name).removesuffix(".gcda")] = data[at + name_bytes : at + name_bytes + count]
            at += name_bytes + count
    except (zlib.error, struct.error, UnicodeDecodeError) as error:
        raise TestbedError(f"{path}: byte {at}: want counters of a kernel: {error}") from error
    return objects


def _in_tree(name: str) -> str:
    """Where a source or an object lies in the kernel's tree, of any path of it: below net/ or include/."""
    return re.sub(r"^.*?/(?=(net|include)/)", "", name.replace("/./", "/"))


def add_function(files: dict[str, SourceFile], function: Function, counters: Counts) -> None:
    """Add a function's executions, (counted arcs, points), to its source files."""
    result = executed(function, counters)
    home = files.setdefault(_in_tree(function.file), SourceFile(_in_tree(function.file)))
    _sum(home.functions, (function.name, function.line), result.blocks[0])
    home.ends[function.line] = function.end
    ways: dict[int, list[int]] = {}
    for index, arc in enumerate(function.arcs):
        if not arc.fake:
            ways.setdefault(arc.source, []).append(index)
    for block, lines in function.lines.items():
        for file, line in dict.fromkeys(lines):
            of_file = files.setdefault(_in_tree(file), SourceFile(_in_tree(file)))
            before = of_file.lines.get(line)
            of_file.lines[line] = result.blocks[block] if before is None else np.maximum(before, result.blocks[block])
        if lines and len(arcs := ways.get(block, [])) > 1:
            file, line = lines[-1]
            for number, index in enumerate(arcs):
                key = (line, f"{function.name}:{block}", number)
                _sum(files[_in_tree(file)].branches, key, result.arcs[index])


def _sum(counts: dict[Key, Counts], key: Key, more: Counts) -> None:
    counts[key] = counts[key] + more if key in counts else more
