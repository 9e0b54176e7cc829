# SPDX-License-Identifier: Apache-2.0
"""Known faults of Linux's TCP, as files: what it was, a small edit that brings it back, and a plan that detects it.

All edits are in one kernel, each behind a switch (testctl_is() of lab/kernel/variants/mutants_switch.h) that one word
of the command line sets, as mutants are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.metrics import metric_names
from testctl.mutate.draw import Mutant, fit
from testctl.mutate.operators import Site
from testctl.plan import Plan, load_plan
from testctl.plan.diagnostics import Problems
from testctl.plan.fields import Field, Fields
from testctl.plan.yaml_reader import Node, parse
from testctl.plan.yaml_reader import Sequence as SequenceNode
from testctl.rules import rules

SWITCH = re.compile(r"\bBUG\b")
"""In the text of an edit: whether the fault is wanted."""
_FIELDS = {
    "bug": Field("one sentence: what went wrong, for whom", needed=True),
    "source": Field("the release and commit that fixed it, a report", needed=True),
    "since": Field("the first release that has it"),
    "fixed": Field("the first release that has it no more"),
    "edits": Field("texts of the kernel's source and what is to replace them", needed=True),
    "plan": Field("a plan that fails with it and passes without", needed=True),
}
_EDIT = {
    "file": Field("a C file of the kernel's tree", needed=True),
    "find": Field("a text that it has once", needed=True),
    "replace": Field("the text with the fault where BUG is true", needed=True),
}


@dataclass(frozen=True)
class Edit:
    file: str
    find: str
    replace: str


@dataclass(frozen=True)
class Bug:
    """A fault; file: where it is written.  The fields are _FIELDS'."""

    name: str
    file: Path
    bug: str
    source: str
    since: str
    fixed: str
    edits: tuple[Edit, ...]
    plan: Plan


def load_bug(file: Path, kernel: str) -> Bug:
    """Raises PlanError with every problem and its place.  kernel: the one that its plan is run on."""
    try:
        node = parse(file.read_bytes(), str(file))
    except OSError as error:
        raise PlanError(f"{file}: can't read the bug: {error.strerror}") from error
    problems = Problems()
    fields = Fields(node, "", _FIELDS, problems)
    edits = _edits(fields.nodes.get("edits"), problems)
    bug, origin, since, fixed = (fields.text(name) for name in ("bug", "source", "since", "fixed"))
    problems.check()
    plan = load_plan(
        fields.nodes["plan"], metrics=metric_names(), rules=rules(), overrides=[f"hosts.kernel='{kernel}'"]
    )
    return Bug(file.stem, file, bug, origin, since, fixed, edits, plan)


def _edits(node: Node | None, problems: Problems) -> tuple[Edit, ...]:
    if not isinstance(node, SequenceNode) or not node.items:
        if node is not None:
            problems.add(node.place, "edits: want a list of file, find and replace")
        return ()
    made = []
    for item in node.items:
        fields = Fields(item, "edits", _EDIT, problems)
        if not fields.ok:
            continue
        edit = Edit(*(fields.text(name) for name in _EDIT))
        if not SWITCH.search(edit.replace):
            place = fields.nodes["replace"].place
            problems.add(place, "edits: replace: want BUG in it, which is true when the fault is wanted; got none")
        made.append(edit)
    return tuple(made)


def mutants_of(bugs: Sequence[Bug], texts: Mapping[str, bytes]) -> list[Mutant]:
    """The edits of all bugs, numbered by their bugs from 1 on.

    Raises PlanError for a text that a file does not have once, or that another bug's edit is in.
    """
    made: list[tuple[Bug, Mutant]] = []
    for number, bug in enumerate(bugs, 1):
        for edit in bug.edits:
            text, find = texts[edit.file], edit.find.encode()
            if (count := text.count(find)) != 1:
                raise PlanError(
                    f"{bug.file}: {edit.file}: want the text once; got it {count} times: {_short(edit.find)}"
                )
            start = text.index(find)
            switched = SWITCH.sub(f"testctl_is({number})", edit.replace)
            line = text.count(b"\n", 0, start) + 1
            site = Site(edit.file, "", line, "bug", start, start + len(find), edit.find, edit.replace, instead=switched)
            for other, mutant in made:
                if mutant.site.file == site.file and not fit(site, mutant.site):
                    raise PlanError(
                        f"{bug.file}: {edit.file}:{line}: want a text that no other edit has; {other.name} has it"
                    )
            made.append((bug, Mutant(number, site)))
    return [mutant for _, mutant in made]


def _short(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 70 else f"{line[:70]}…"
