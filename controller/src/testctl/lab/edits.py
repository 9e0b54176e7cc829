# SPDX-License-Identifier: Apache-2.0
"""The edits of lab/kernel/edits.yaml to a copy of a kernel's tree; each is for some versions, and is checked."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from pathlib import Path

import yaml
from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import durable

Version = tuple[int, ...]

_COMPARE = {"<": operator.lt, "<=": operator.le, ">=": operator.ge}
_TERM = re.compile(r"(<=|>=|<)(\d+(?:\.\d+)+)")
_SHOWN = 70
"""Characters of a text that an error shows."""


@dataclass(frozen=True)
class Edit:
    """One edit of one file.

    when     the versions it is for: terms such as >=6.1 and <6.13, which must all hold
    find     the text to replace; "": `replace` is appended as a line
    otherwise  why other versions do not need it; "" only if it is for all later versions
    """

    file: str
    when: str
    why: str
    find: str
    replace: str
    otherwise: str = ""

    def is_for(self, version: Version) -> bool:
        bounds = [(sign, tuple(map(int, bound.split(".")))) for sign, bound in _terms(self.when)]
        return all(_COMPARE[sign](version[: len(bound)], bound) for sign, bound in bounds)

    def apply(self, text: str | None, version: Version) -> str:
        """A file's text, changed.  Raises TestbedError if there is no file (None), or no text to replace in it."""
        who = f"kernel tree {'.'.join(map(str, version))}: {self.file}"
        rule = f"lab/kernel/edits.yaml is to change it in versions {self.when}: {self.why}"
        if text is None:
            raise TestbedError(f"{who}: no such file; {rule}")
        if not self.find:
            return f"{text}{self.replace}\n"
        if self.find not in text:
            wanted = self.find if len(self.find) <= _SHOWN else self.find[:_SHOWN] + "…"
            raise TestbedError(f"{who}: want the text {wanted!r}, which is not there; {rule}")
        return text.replace(self.find, self.replace)


def load_edits(path: Path) -> list[Edit]:
    """Every edit of the file.  Raises TestbedError for an invalid one."""
    edits = []
    for number, raw in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")), 1):
        where = f"{path}: edit {number}"
        lacking = [key for key in ("file", "when", "why") if not raw.get(key)]
        if lacking or ("append" in raw) == ("find" in raw) or ("find" in raw) != ("replace" in raw):
            raise TestbedError(f"{where}: want file, when, why, and append or find and replace; got {', '.join(raw)}")
        if not _terms(raw["when"]):
            raise TestbedError(f"{where}: want when as >=6.1 or >=6.1 <6.13; got {raw['when']!r}")
        if "<" in raw["when"] and not raw.get("otherwise"):
            raise TestbedError(f"{where}: want otherwise, why versions beyond {raw['when']} do not need it; got none")
        text = raw.get("append") or raw["replace"]
        why, otherwise = (" ".join(raw.get(key, "").split()) for key in ("why", "otherwise"))
        edits.append(Edit(raw["file"], raw["when"], why, raw.get("find", ""), text or "", otherwise))
    return edits


def version_of(tree: Path) -> Version:
    """(6, 12, 117), from the tree's Makefile.  Raises TestbedError if the Makefile has no version."""
    makefile = tree / "Makefile"
    text = makefile.read_text(encoding="utf-8") if makefile.is_file() else ""
    names = ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    matches = [re.search(rf"^{name}\s*=\s*(\d+)", text, re.MULTILINE) for name in names]
    numbers = [int(match[1]) for match in matches if match]
    if len(numbers) != len(names):
        raise TestbedError(f"{makefile}: want VERSION, PATCHLEVEL and SUBLEVEL; this is no kernel tree")
    return tuple(numbers)


def apply_edits(path: Path, tree: Path, pristine: Path | None = None) -> list[str]:
    """Apply all edits of a file that are for the version of a tree; a line about each, made or not needed.

    pristine: where the files are as they were before any edit; default: in the tree.  A file of the tree that
    would get the text that it has is not written.
    """
    version = version_of(tree)
    texts: dict[str, str | None] = {}
    lines = []
    for edit in load_edits(path):
        text = texts[edit.file] if edit.file in texts else _text(tree if pristine is None else pristine, edit.file)
        if edit.is_for(version):
            text = edit.apply(text, version)
            lines.append(f"{edit.file}: changed: {edit.why}")
        else:
            lines.append(f"{edit.file}: not changed, is for {edit.when}: {edit.otherwise or 'older trees have it not'}")
        texts[edit.file] = text
    for name, text in texts.items():
        if text is not None and text != _text(tree, name):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            durable.write(tree / name, text.encode())
    return lines


def _text(tree: Path, name: str) -> str | None:
    path = tree / name
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _terms(when: str) -> list[tuple[str, str]]:
    """(sign, version) of each term; [] if a term is invalid."""
    matches = [_TERM.fullmatch(word) for word in str(when).split()]
    return [(match[1], match[2]) for match in matches if match] if all(matches) else []
