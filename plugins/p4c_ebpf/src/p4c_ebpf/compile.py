# SPDX-License-Identifier: Apache-2.0
"""Compiles a P4 program's BMv2 JSON to a BPF object, NAME.o, with its layout.json beside it.

The object is the same on every machine that has the same clang: it has no paths and no debugging information but BTF.
The layout has hashes of what was compiled and of the object, so that nobody needs clang to check that both are current.
Compiling needs clang, llvm-strip and the kernel's uapi headers; loading what was compiled needs none of them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from p4c_ebpf.errors import ProgramError, ToolError
from p4c_ebpf.layout import Layout, from_json
from p4c_ebpf.translate import ALONE, Role, Translation, translate

LAYOUT = "layout.json"
_HERE = Path(__file__).parent
_RUNTIME = _HERE / "runtime"
FLAGS = ("-target", "bpf", "-mcpu=v3", "-O2", "-g", "-fno-strict-aliasing", "-Wall", "-Wno-unused-function",
         "-Wno-unused-const-variable", "-Wno-unused-variable", "-Wno-unused-label", "-Werror")  # fmt: skip
_PACKAGES = {"clang": "clang", "llvm-strip": "llvm"}
"""Of Debian."""


@dataclass(frozen=True)
class Compiled:
    """Where a program's object is, and what lies where in its maps."""

    object: Path
    layout: Layout


def translated(path: Path, harness: bool = False, first_port: int = 1, role: Role = ALONE) -> Translation:
    """The program as C; its layout has the hash of all that is compiled.  Raises ProgramError."""
    found = translate(path, first_port, role)
    digest = hashlib.sha256(repr((FLAGS, harness)).encode() + found.source.encode())
    for header in sorted(_RUNTIME.glob("*.h")):
        digest.update(header.name.encode() + b"\0" + header.read_bytes())
    return Translation(found.source, dataclasses.replace(found.layout, sources=digest.hexdigest()))


def compiled(path: Path, folder: Path, harness: bool = False, first_port: int = 1, role: Role = ALONE) -> Compiled:
    """Translate and compile into a directory.

    harness: the variant that tests run by BPF_PROG_TEST_RUN (runtime/transmit.h); first_port: see translate.py.  Raises
    ProgramError for what can't be translated, ToolError when clang is missing or fails.
    """
    translation = translated(path, harness, first_port, role)
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{path.stem}.o"
    with tempfile.TemporaryDirectory() as name:
        # The folder of asm/types.h, which -target bpf does not look in.
        includes = (f"-I{_RUNTIME}", f"-I/usr/include/{platform.machine()}-linux-gnu")
        no_paths = ("-fdebug-compilation-dir=.", f"-ffile-prefix-map={_HERE}=.")
        (Path(name) / "program.c").write_text(translation.source, encoding="utf-8")
        _run(name, "clang", *FLAGS, *no_paths, *(["-DP4C_EBPF_HARNESS"] if harness else []), *includes,
             "-c", "program.c", "-o", "program.o")  # fmt: skip
        _run(name, "llvm-strip", "-g", "program.o")
        shutil.copyfile(Path(name) / "program.o", made)
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    layout = dataclasses.replace(translation.layout, object=digest)
    (folder / LAYOUT).write_text(layout.to_json(), encoding="utf-8")
    return Compiled(made, layout)


def _run(directory: str, program: str, *arguments: str) -> None:
    try:
        subprocess.run([program, *arguments], cwd=directory, capture_output=True, text=True, timeout=300.0, check=True)
    except FileNotFoundError as error:
        raise ToolError(f"{program} is not installed: a P4 program can't be compiled "
                        f"(Debian: apt install {_PACKAGES[program]})") from error  # fmt: skip
    except subprocess.SubprocessError as error:
        raise ToolError(f"{program}: {getattr(error, 'stderr', None) or error}") from error


def read_layout(path: Path) -> Layout:
    """The layout of a program that was compiled.  Raises ProgramError."""
    try:
        return from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProgramError(f"{path}: can't be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ProgramError(f"{path}: want the {LAYOUT} of a compiled program; got {error!r}") from error


def stale(path: Path, folder: Path, role: Role = ALONE) -> str:
    """What of a program's object and layout in a directory is not of this program; "" if both are.

    Another version of clang makes other bytes of the same sources: these are compared, and that the object is the one
    that was compiled with the layout.  Raises ProgramError.
    """
    made = folder / f"{path.stem}.o"
    known = read_layout(folder / LAYOUT)
    try:
        digest = hashlib.sha256(made.read_bytes())
    except OSError as error:
        raise ProgramError(f"{error.filename}: can't be read: {error.strerror}") from error
    if dataclasses.replace(translated(path, role=role).layout, object=known.object) != known:
        return f"{folder / LAYOUT}: not that of {path}"
    return "" if digest.hexdigest() == known.object else f"{made}: not the object of {folder / LAYOUT}"
