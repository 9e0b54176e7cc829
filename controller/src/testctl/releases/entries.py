# SPDX-License-Identifier: Apache-2.0
"""The user's file: labels and reasons of the groups of points that differ."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import shown

from testctl.plan.diagnostics import Place, Problems
from testctl.plan.fields import Field, Fields, words_of
from testctl.plan.yaml_reader import Mapping as MappingNode
from testctl.plan.yaml_reader import Node, Sequence, parse
from testctl.results import RunPoint

LABELS = ("regression", "unknown", "improvement", "expected")
"""In the order in which groups are shown."""
_FIELDS = {
    "name": Field("the cause in a few words", needed=True),
    "between": Field("the two kernels", needed=True),
    "key": Field("of the points that it is about, or several; * stands for anything"),
    "tuples": Field("entity.parameter: a value that the points have, or several"),
    "label": Field("what it is", {"enum": list(LABELS)}, needed=True),
    "reason": Field("why the packets differ", needed=True),
    "source": Field("the release and commit, an RFC, a report"),
    "bug": Field("a file of plans/corpus"),
}


@dataclass(frozen=True)
class Entry:
    """The fields are _FIELDS'; keys, tuples: empty where it does not matter."""

    place: Place
    name: str
    between: tuple[str, ...]
    keys: tuple[str, ...]
    tuples: Mapping[str, tuple[str, ...]]
    label: str
    reason: str
    source: str = ""
    bug: str = ""

    def matches(self, between: tuple[str, str], key: str, point: RunPoint) -> bool:
        if between != self.between or (
            self.keys and not any(fnmatch.fnmatchcase(key, pattern) for pattern in self.keys)
        ):
            return False
        values = {f"{entity}.{parameter}": shown(value) for entity, parameter, value in point.tuples}
        return all(values.get(name) in wanted for name, wanted in self.tuples.items())


def load_entries(file: Path, bugs: Collection[str]) -> list[Entry]:
    """bugs: the names of the corpus.  Raises PlanError with every problem and its place."""
    try:
        node = parse(file.read_bytes(), str(file))
    except OSError as error:
        raise PlanError(f"{file}: can't read the entries: {error.strerror}") from error
    problems = Problems()
    whole = Fields(node, "", {"groups": Field("entries", needed=True)}, problems)
    listed = whole.nodes.get("groups")
    if listed is not None and not isinstance(listed, Sequence):
        whole.refuse(listed, "groups", "a list of entries")
    items = listed.items if isinstance(listed, Sequence) else ()
    entries = [_entry(item, bugs, problems) for item in items]
    problems.check()
    return entries


def _entry(node: Node, bugs: Collection[str], problems: Problems) -> Entry:
    """What it makes of a wrong entry is not used: there is a problem then."""
    fields = Fields(node, "groups", _FIELDS, problems)
    between, keys = (_texts(fields.nodes.get(name), f"groups: {name}", problems) for name in ("between", "key"))
    if len(between) != 2 and "between" in fields.nodes:
        fields.refuse(fields.nodes["between"], "between", "two kernels")
    tuples = fields.nodes.get("tuples")
    if tuples is not None and not isinstance(tuples, MappingNode):
        fields.refuse(tuples, "tuples", "entity.parameter: value")
    values = tuples.entries if isinstance(tuples, MappingNode) else ()
    bug = fields.text("bug")
    if bug and bug not in bugs:
        fields.refuse(fields.nodes["bug"], "bug", "a name of the corpus")
    return Entry(
        node.place, fields.text("name"), between, keys,
        {key.text: _texts(value, f"groups: tuples: {key.text}", problems) for key, value in values},
        fields.choice("label", LABELS[0]), fields.text("reason"), fields.text("source"), bug,
    )  # fmt: skip


def _texts(node: Node | None, who: str, problems: Problems) -> tuple[str, ...]:
    return () if node is None else tuple(word.text for word in words_of(node, who, problems))
