# SPDX-License-Identifier: Apache-2.0
"""C text as it is being written: lines with their indentation, and labels that are used once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Code:
    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth
        self._labels = 0

    def add(self, *lines: str) -> None:
        self._lines.extend(f"{chr(9) * self._depth}{line}" if line else "" for line in lines)

    def label(self, name: str) -> None:
        """A place to jump to; the empty statement lets a block end there."""
        self._lines.append(f"{name}: __attribute__((unused));")

    def unique(self, stem: str) -> str:
        self._labels += 1
        return f"{stem}_{self._labels}"

    @contextmanager
    def block(self, head: str = "", tail: str = "") -> Iterator[None]:
        self.add(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.add(f"}}{tail}")

    @contextmanager
    def cell(self, kind: str, name: str, of: str, at: str, where: str = "") -> Iterator[None]:
        """Statements for the cell of the map `of`, which `name` points to, if there is one at that place."""
        with self.block(where):
            self.add(f"u32 at = {at};", f"{kind} *{name} = bpf_map_lookup_elem(&{of}, &at);", "")
            with self.block(f"if ({name})"):
                yield

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def map_of(name: str, kind: str, entries: int, value: str, key: str = "__type(key, u32)") -> str:
    """C of a BPF map."""
    return (
        f"struct {{\n\t__uint(type, BPF_MAP_TYPE_{kind});\n\t__uint(max_entries, {entries});\n"
        f'\t{key};\n\t__type(value, {value});\n}} {name} SEC(".maps");\n'
    )
