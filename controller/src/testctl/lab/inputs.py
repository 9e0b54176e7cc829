# SPDX-License-Identifier: Apache-2.0
"""The inputs of a lab kernel's build, and which of them a plan needs."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

from testctl.lab import coverage
from testctl.lab.source import VARIANTS, KernelSource
from testctl.system import checkout
from testctl.system.subprocesses import run

KERNEL, CC, VARIANT = "lab/kernel", "lab/cc", "lab/kernel/variants"
_INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"/]+)"', re.MULTILINE)


def files() -> list[Path]:
    """The files of the checkout that are built into a kernel."""
    lab = checkout.lab()
    own = [path for path in (lab / "kernel").glob("*") if path.is_file()]
    return sorted([*own, *(lab / "cc").glob("*.[ch]")])


def variant_files(variant: str) -> list[Path]:
    """The files that a variant of a kernel has in its configuration besides, in their order."""
    return [checkout.lab() / "kernel" / "variants" / f"{name}.config" for name in VARIANTS.get(variant, ())]


def variant_sources(variant: str) -> list[Path]:
    """The C files that are built into a variant of a kernel besides, PART_*.[ch] of each of its parts."""
    where = checkout.lab() / "kernel" / "variants"
    return sorted(path for name in VARIANTS.get(variant, ()) for path in where.glob(f"{name}_*.[ch]"))


def needed(ccs: Iterable[str]) -> set[str]:
    """The files of the checkout that a kernel with these congestion controls needs.

    All of lab/kernel, lab/cc/tcp_NAME.c of each of the project's own, and the headers of lab/cc that these include.
    """
    by_name = {path.name: path for path in files()}
    pending = [path for path in files() if path.parent.name == "kernel"]
    pending += [by_name[f"tcp_{name}.c"] for name in ccs if f"tcp_{name}.c" in by_name]
    seen: dict[str, Path] = {}
    while pending:
        path = pending.pop()
        if path.name not in seen:
            seen[path.name] = path
            headers = [header.decode() for header in _INCLUDE.findall(path.read_bytes())]
            pending += [by_name[header] for header in headers if header in by_name]
    return {_named(path) for path in seen.values()}


def _named(path: Path) -> str:
    return f"lab/{path.parent.name}/{path.name}"


@dataclass(frozen=True)
class Inputs:
    """Everything that determines a built kernel.

    source    fingerprint of the kernel's sources
    compiler  the compiler's version text; "": there is none, and a kernel may be built by any
    files     SHA-256 of each file of lab/kernel and lab/cc by its name in the checkout, and of the variant's
    """

    source: str
    compiler: str
    files: Mapping[str, str]

    @classmethod
    def of(cls, source: KernelSource) -> Inputs:
        """The present inputs."""
        more = [*variant_files(source.variant), *variant_sources(source.variant)]
        more += [Path(coverage.__file__)] if source.variant == coverage.VARIANT else []
        of_variant = {f"{VARIANT}/{path.name}": _hash(path) for path in more}
        compiler = run(["gcc", "--version"]) if shutil.which("gcc") else ""
        return cls(source.fingerprint(), compiler, cls.hashes() | of_variant)

    @staticmethod
    def hashes() -> dict[str, str]:
        """SHA-256 of each of the checkout's files."""
        return {_named(path): _hash(path) for path in files()}

    @classmethod
    def from_json(cls, text: str) -> Inputs:
        """The inputs from to_json's text.  Raises TestbedError for any other text."""
        try:
            raw = json.loads(text)
            return cls(str(raw["source"]), str(raw["compiler"]), {str(n): str(h) for n, h in raw["files"].items()})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise TestbedError(f"want a kernel's source, compiler and files; got {text[:80]!r}") from error

    def to_json(self) -> str:
        return json.dumps({"source": self.source, "compiler": self.compiler, "files": dict(self.files)}, indent=1)

    @property
    def key(self) -> str:
        """A hash of all inputs, which identifies the kernel."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def differences(self, built: Inputs, ccs: Collection[str] | None = None) -> list[str]:
        """Why a kernel built from `built` does not fit these inputs; [] if it does.

        ccs: the congestion controls that are used; None: all of them
        """
        names = self.files.keys() if ccs is None else needed(ccs) | {n for n in self.files if n.startswith(VARIANT)}
        gone = built.files.keys() - self.files.keys()
        if ccs is not None:
            gone = {name for name in gone if name.startswith(KERNEL) or name in {f"{CC}/tcp_{cc}.c" for cc in ccs}}
        differences = [f"{name} {'changed' if name in built.files else 'is new'}" for name in sorted(names)
                       if built.files.get(name) != self.files[name]]  # fmt: skip
        differences += [f"{name} is gone" for name in sorted(gone)]
        differences += ["the compiler is another one"] if self.compiler not in ("", built.compiler) else []
        return differences + (["the kernel's sources are others"] if built.source != self.source else [])


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
