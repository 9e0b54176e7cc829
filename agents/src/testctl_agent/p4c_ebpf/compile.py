# SPDX-License-Identifier: Apache-2.0
"""A P4 program's BMv2 JSON compiled to a BPF object, once: what was compiled is kept in a cache.

A cache entry, $TESTCTL_CACHE/p4/<key>/, holds program.c, program.o and layout.json.  Its key is the
hash of the JSON, of everything in this package and of clang's version.  Compiling needs clang and
the kernel's uapi headers; loading what was compiled needs neither.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.p4c_ebpf.layout import Layout, from_json
from testctl_agent.p4c_ebpf.translate import translate
from testctl_agent.spec.errors import ProgramError
from testctl_agent.system import durable, toolchain
from testctl_agent.system.subprocesses import run

_HERE = Path(__file__).parent
_RUNTIME = _HERE / "runtime"
_FLAGS = (*toolchain.BPF_FLAGS, "-fno-strict-aliasing", "-Wall", "-Wno-unused-function", "-Wno-unused-const-variable",
          "-Wno-unused-variable", "-Wno-unused-label", "-Werror")  # fmt: skip


@dataclass(frozen=True)
class Compiled:
    """Where a program's object is, and what lies where in its maps."""

    object: Path
    source: Path
    layout: Layout


def _clang() -> tuple[str, str]:
    """clang's path and version."""
    return toolchain.compiler("clang", "a P4 program")


def _key(text: bytes, name: str, defines: tuple[str, ...]) -> str:
    digest = hashlib.sha256(text)
    digest.update(repr((name, defines, _FLAGS, _clang()[1])).encode())
    for one in sorted([*_HERE.glob("*.py"), *_RUNTIME.glob("*.h")]):
        digest.update(one.name.encode() + b"\0" + one.read_bytes())
    return digest.hexdigest()[:24]


def compiled(json_path: Path, harness: bool = False, first_port: int = 1) -> Compiled:
    """Translate and compile, or take it from the cache.

    harness: the variant that tests run by BPF_PROG_TEST_RUN (runtime/transmit.h); first_port: see translate.py.  Raises
    ProgramError for what can't be translated, TestbedError when clang is missing or fails.
    """
    try:
        text = json_path.read_bytes()
    except OSError as error:
        raise ProgramError(f"{json_path}: can't be read: {error.strerror}") from error
    defines = ("-DTESTCTL_HARNESS",) if harness else ()
    folder = (
        toolchain.cache_dir() / "p4" / _key(text, json_path.name, (*defines, *(["port 0"] if not first_port else [])))
    )
    if not folder.exists():
        _make(json_path, folder, defines, first_port)
    source = (folder / "layout.json").read_text(encoding="utf-8")
    return Compiled(folder / "program.o", folder / "program.c", from_json(source))


def _make(json_path: Path, folder: Path, defines: tuple[str, ...], first_port: int) -> None:
    """Fill a cache entry; it appears whole, or not at all."""
    translation = translate(json_path, first_port)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as name:
        new = Path(name) / "entry"
        new.mkdir()
        (new / "program.c").write_text(translation.source, encoding="utf-8")
        (new / "layout.json").write_text(translation.layout.to_json(), encoding="utf-8")
        run([_clang()[0], *_FLAGS, *defines, f"-I{_RUNTIME}", "-c", str(new / "program.c"), "-o",
             str(new / "program.o")], timeout_s=300.0)  # fmt: skip
        try:
            durable.publish(new, folder)
        except OSError:
            if not folder.exists():  # not another process that was first
                raise
