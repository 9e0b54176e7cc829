# SPDX-License-Identifier: Apache-2.0
"""Which points a change of the kernel's source can concern: those that executed its lines before the change.

In virtual time a point that does not execute what changed does the same as before.  So where a line is not known, such
as the line of a structure in a header, every point counts as concerned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from fnmatch import fnmatch

import numpy as np

from testctl.coverage.graph import Counts
from testctl.coverage.table import Coverage, SourceFile
from testctl.lab.coverage import COUNTED

_NOT_BUILT = ("Documentation", "LICENSES", "samples", "scripts", "tools")
"""Directories of a tree that no kernel is made from."""
_BUILDS = ("scripts/Makefile", "scripts/Kconfig", "scripts/kconfig")
_HEADERS = "include/net/tcp*.h"
"""Headers whose functions are in counted files; other headers' can be in any file."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_LEAVES = re.compile(r"\s*(?:return\s+[^()]*;|return;|break;|continue;|goto\s)")
_NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL)


@dataclass(frozen=True)
class Change:
    """A file that differs: its text before and after, and their git diff without context."""

    before: str
    after: str
    diff: str


@dataclass
class Affected:
    """executions  of changed lines, by each point of the coverage
    functions   with a changed line: their file, first and last line
    why_all     reasons why every point can be concerned
    unreached   changed lines that no point executed, such as net/ipv4/tcp_input.c:3048: tp->snd_una = ack;
    not_built   changed files that are not part of this kernel
    """

    executions: Counts
    functions: set[tuple[str, int, int]] = field(default_factory=set)
    why_all: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    not_built: list[str] = field(default_factory=list)


def affected(coverage: Coverage, changes: Mapping[str, Change | None]) -> Affected:
    """What a change concerns.

    coverage  of the kernel before the change
    changes   of each file that differs, by its name in the tree; None: one that was not looked at, since no lines
              of it can be counted
    """
    result = Affected(np.zeros(len(coverage.points), np.int64))
    for name, change in sorted(changes.items()):
        if name.startswith(_NOT_BUILT) and not name.startswith(_BUILDS):
            result.not_built.append(name)
        elif change is None or (file := coverage.files.get(name)) is None or not _is_counted(name):
            if name.endswith(".c") and _is_counted(name):
                result.not_built.append(name)
            elif change is None or _dense(_code(change.before)) != _dense(_code(change.after)):
                result.why_all.append(f"{name} has no lines that are counted")
        else:
            _add(result, name, file, change, coverage.text(name))
    return result


def most_different(coverage: Coverage, concerned: Affected, among: Sequence[int], count: int) -> list[int]:
    """`count` of these points, in an order in which each executes most ways out of blocks that few before it did.

    First those that none did, of the changed functions (of all files where no function is known); then these count
    together four times as much as all of their files.
    """
    names = {name for name, _, _ in concerned.functions} or set(coverage.files)
    own, every = [np.ones(len(among), bool)], [np.ones(len(among), bool)]
    for name in names:
        for (line, _, _), counts in coverage.files[name].branches.items():
            every.append(counts[among] > 0)
            here = any(file == name and first <= line <= last for file, first, last in concerned.functions)
            if here or not concerned.functions:
                own.append(every[-1])
    of_functions, of_files = np.stack(own), np.stack(every)
    times, times_all = np.zeros(len(own)), np.zeros(len(every))
    chosen: list[int] = []
    left = np.ones(len(among), bool)
    while left.any() and len(chosen) < count:
        near = 4 * (of_functions / (1 + times)[:, None]).mean(axis=0)
        new = 10 * of_functions[times == 0].sum(axis=0)
        worth = new + near + (of_files / ((1 + times_all) ** 2)[:, None]).mean(axis=0)
        best = int(np.where(left, worth, -1).argmax())
        left[best] = False
        chosen.append(among[best])
        times += of_functions[:, best]
        times_all += of_files[:, best]
    return chosen


def _is_counted(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in (*COUNTED, _HEADERS))


def _add(result: Affected, name: str, file: SourceFile, change: Change, compiled: list[str]) -> None:
    before, after = _code(change.before), _code(change.after)
    numbers = _numbers(change.before.splitlines(), compiled)
    for removed, added in _hunks(change.diff):
        old, new = before[removed.start - 1 : removed.stop - 1], after[added.start - 1 : added.stop - 1]
        if _dense(old) == _dense(new):
            continue
        if not removed and _is_apart(before, removed.start, "".join(new)):
            continue
        # Lines that are put in are executed only where one of those around them is.
        for line in removed or range(removed.start - 1, removed.start + 1):
            if removed and not before[line - 1].strip():
                continue
            if function := _function(file, numbers.get(line, line)):
                result.functions.add((name, *function))
            counts = _executions(file, line, before, numbers)
            if counts is None and name.endswith(".h"):
                result.why_all.append(f"{name}:{line} is outside of functions")
                break
            counts = _whole(file) if counts is None else counts
            result.executions += counts
            if removed and not counts.any():
                result.unreached.append(f"{name}:{line}: {before[line - 1].strip()}")


def _whole(file: SourceFile) -> Counts:
    """Executions of a file's functions: these can depend on code outside of them."""
    total: Counts = np.stack(list(file.functions.values())).sum(axis=0)
    return total


def _executions(file: SourceFile, line: int, text: list[str], numbers: Mapping[int, int]) -> Counts | None:
    """A statement's; without code of its own the most of the lines with code around it in its function.

    The compiler joins the ends of a function, so that a statement which only leaves it can have the counts of another:
    the last line before that is not within a deeper block counts too.

    text: of the file; numbers: its lines as they were compiled.  None: the line is in no function
    """
    place = numbers.get(line, line)
    function = _function(file, place)
    if function is None:
        return file.lines.get(place)
    first, last = function
    own = text[line - 1] if line <= len(text) else ""
    begin = _begin(text, line)
    there = [n for n in range(numbers.get(begin, begin), place + 1) if n in file.lines]
    if not there or _LEAVES.match(own):
        coded = sorted(number for number in file.lines if first <= number <= last)
        there += [*[n for n in coded if n < place][-1:], *[n for n in coded if n > place][:1]]
    if _LEAVES.match(own):
        above_it = (n for n in range(line - 1, 0, -1) if numbers.get(n, n) in file.lines)
        outer = (n for n in above_it if _depth(text, n) <= _depth(text, line))
        there += [numbers.get(n, n) for n in [next(outer, line)] if first <= numbers.get(n, n) <= last]
    counts = [file.lines[number] for number in there if number in file.lines]
    return np.stack(counts).max(axis=0) if counts else None


def _function(file: SourceFile, place: int) -> tuple[int, int] | None:
    """The first and the last line of the function that a compiled line is in."""
    return max(((first, last) for first, last in file.ends.items() if first <= place <= last), default=None)


def _begin(text: list[str], line: int) -> int:
    """The first line of what stands in parentheses that are open at a line; the line itself where none are."""
    begin, still_open = line, 0
    for number in range(line - 1, 0, -1):
        above = text[number - 1].strip()
        if not above or above.endswith((";", "{", "}", ":")):
            break
        still_open += above.count("(") - above.count(")")
        begin = number if still_open > 0 else begin
    return begin


def _depth(text: list[str], line: int) -> int:
    own = text[line - 1].expandtabs()
    return len(own) - len(own.lstrip())


def _is_apart(before: list[str], line: int, new: str) -> bool:
    """Whether code that is put in before a line is between definitions and can't change them."""
    text = "".join(before[: line - 1]).rstrip()
    complete = not text or text.endswith((";", "}")) or text.rpartition("\n")[2].startswith("#")
    return complete and text.count("{") == text.count("}") and not re.search(r"^\s*#|\w+_init\w*\(", new, re.MULTILINE)


def _hunks(diff: str) -> list[tuple[range, range]]:
    """The lines of each hunk, before and after; of no lines: the place that they would be in front of."""
    hunks = []
    for match in _HUNK.finditer(diff):
        first, count, new_first, new_count = (int(number or 1) for number in match.groups())
        first, new_first = first + (count == 0), new_first + (new_count == 0)
        hunks.append((range(first, first + count), range(new_first, new_first + new_count)))
    return hunks


def _code(text: str) -> list[str]:
    """The lines of a C file without comments; with their ends."""

    def blank(match: re.Match[str]) -> str:
        return match[1] or " " + "\n" * match[0].count("\n")

    return _NO_CODE.sub(blank, text).splitlines(keepends=True)


def _dense(lines: list[str]) -> str:
    """Without white space."""
    return "".join("".join(lines).split())


def _numbers(text: list[str], compiled: list[str]) -> dict[int, int]:
    """The number that each line has in the text that was compiled, where the lab's edits moved it."""
    if text == compiled or not compiled:
        return {}
    blocks = SequenceMatcher(None, text, compiled).get_matching_blocks()
    return {a + i + 1: b + i + 1 for a, b, size in blocks for i in range(size)}
