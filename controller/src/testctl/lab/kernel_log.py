# SPDX-License-Identifier: Apache-2.0
"""What a lab's kernel reports of itself: warnings, oopses, bugs, and the reports of sanitizers and lockdep."""

from __future__ import annotations

import re
from pathlib import Path

MOST_FAULTS, MOST_LINES = 8, 100

_BEGINS = re.compile(
    r"WARNING: |BUG: |BUG [\w:.-]+ \(|kernel BUG at |Oops: |general protection fault|Kernel panic|UBSAN: |KCSAN: |"
    r"Kernel mode (signal|fault)|divide error|stack guard page|list_(add|del) corruption|ODEBUG: |unreferenced object|"
    r"rcu: INFO: |INFO: (possible|task .* blocked|trying to register non-static|suspicious|rcu_)|"
    r"unregister_netdevice: waiting for|watchdog: "
)
_ENDS = re.compile(r"---\[ end (trace|Kernel panic)|^={20,}$")
_CUT = "[ cut here ]"
_PREFIX = re.compile(r"^(<\d+>)?(\[ *\d+\.\d+\](\[ *[CT]\d+\])?)? ?", re.MULTILINE)

TAINTS = {4: "a machine check", 5: "a bad page", 7: "an oops or a BUG", 9: "a warning", 14: "a soft lockup"}
"""Bits of /proc/sys/kernel/tainted that are set by a fault."""


def read(file: Path) -> list[str]:
    """The faults in the file that a lab's first process wrote: the kernel's taints, then its log."""
    if not file.is_file():
        return []
    head, _, log = file.read_text(encoding="utf-8", errors="replace").partition("\n")
    return faults(log, int(head) if head.isdecimal() else 0)


def faults(log: str, tainted: int = 0) -> list[str]:
    """The text of every report in a kernel's log, in order; at most MOST_FAULTS, and a note on the others.

    tainted: what the kernel says of itself; the log may have lost what it was.
    """
    reports: list[list[str]] = []
    inside, whole = False, False  # in a report; in one that has a beginning and an end of its own
    for line in _PREFIX.sub("", log).splitlines():
        if _CUT in line or (_BEGINS.search(line) and not whole):
            reports.append([])
            inside, whole = True, _CUT in line
        if inside and _CUT not in line and len(reports[-1]) < MOST_LINES:
            reports[-1].append(line)
        if _ENDS.search(line):
            inside = whole = False
    texts = ["\n".join(lines) for lines in reports if lines]
    if not texts:
        happened = [what for bit, what in TAINTS.items() if tainted >> bit & 1]
        return [f"{what}, by the kernel's taints; its log has no longer the text" for what in happened]
    more = len(texts) - MOST_FAULTS
    return texts[:MOST_FAULTS] + ([f"and {more} more reports"] if more > 0 else [])
