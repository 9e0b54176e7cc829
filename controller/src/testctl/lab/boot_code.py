# SPDX-License-Identifier: Apache-2.0
"""All code of a lab's first process and of its agents in one file, made before the first lab that needs it.

A lab opens files of the machine, and each of them costs it more than reading all of them at once.  The file lies in
the cache, $TESTCTL_CACHE/boot/<key>/: `code` has the modules (lab/boot/init.py says how), `init.pyc` is init.py.  Its
key is the hash of the project's code in it, of where that lies, and of the Python that runs it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import marshal
import os
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES, SourceFileLoader
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import TestbedError

from testctl.system import checkout
from testctl.system.subprocesses import run
from testctl.system.temporary import cache_entry

UNUSED_S = 30 * 24 * 3600
METHODS = "methods of data classes"
"""In the index, where no module can have this name."""
Entry = tuple[str, tuple[int, int], str, bool]
_LISTER = """
import dataclasses, json, sys

class Missing(list):
    def find_spec(self, name, path=None, target=None):
        self.append(name)

def compiled(text, *places):
    texts.append(text)
    exec(text, *places)

missing, texts = Missing(), []
sys.meta_path.append(missing)
dataclasses.exec = compiled
sys.path.insert(0, {boot!r})
import first_process
first_process.load_everything()
files = {{name: getattr(module, "__file__", None) for name, module in sys.modules.items()}}
print(json.dumps([files, missing, texts]))
"""
"""Which modules of Python itself the first process and the agents import, which they look for in vain, and the methods
of data classes, which Python would compile in every process: a quarter of the time of all imports."""


@dataclass(frozen=True)
class BootCode:
    """The argv of a lab's first process, and what its environment must have."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


def as_files() -> BootCode:
    """Without the cache: every module from its own file."""
    return BootCode((sys.executable, str(checkout.lab() / "boot" / "init.py")), {})


def boot_code(code: str, modules: Mapping[str, Path]) -> BootCode:
    """From the cache, and made for it if it is not there.  Raises TestbedError; where nothing can be kept, as_files().

    code     the hash of all that the project has in it
    modules  the project's modules with their files
    """
    folder = checkout.cache_dir() / "boot" / _key(code, modules)
    try:
        if not (folder / "code").exists():
            cache_entry(folder, partial(_make, modules))
            _remove_unused(folder.parent)
        with suppress(PermissionError):  # root's cache, which others may only read
            os.utime(folder)
    except OSError:
        return as_files()
    return BootCode(
        (sys.executable, "-S", str(folder / "init.pyc")),
        {"TESTCTL_CODE": str(folder / "code"), "TESTCTL_VERSION": code},
    )


def _remove_unused(home: Path) -> None:
    """Remove what no run has used for UNUSED_S."""
    for entry in home.iterdir():
        with suppress(FileNotFoundError):  # another process was first
            if entry.stat().st_mtime < time.time() - UNUSED_S:
                shutil.rmtree(entry, ignore_errors=True)


def _key(code: str, modules: Mapping[str, Path]) -> str:
    digest = hashlib.sha256(repr((code, sys.version, sys.executable, sys.base_prefix)).encode())
    digest.update(Path(__file__).read_bytes())
    digest.update("\0".join(f"{name} {path}" for name, path in sorted(modules.items())).encode())
    return digest.hexdigest()[:16]


def _make(modules: Mapping[str, Path], new: Path) -> None:
    (new / "code").write_bytes(_archive(modules))
    init = checkout.lab() / "boot" / "init.py"
    code: Any = compile(init.read_bytes(), str(init), "exec", dont_inherit=True)
    unchecked = (1).to_bytes(4, "little")  # Python does not compare this .pyc with its source
    (new / "init.pyc").write_bytes(importlib.util.MAGIC_NUMBER + unchecked + bytes(8) + marshal.dumps(code))


def _archive(modules: Mapping[str, Path]) -> bytes:
    index: dict[str, Entry] = {}
    of_python, texts = _of_python(index)
    code = marshal.dumps({text: compile(text, "<string>", "exec", dont_inherit=True) for text in texts})
    index[METHODS] = ("methods", (0, len(code)), "", False)
    for name, path in [*modules.items(), *of_python]:
        text = marshal.dumps(SourceFileLoader(name, str(path)).get_code(name))
        index[name] = ("code", (len(code), len(text)), str(path), path.name == "__init__.py")
        code += text
    head = marshal.dumps(index)
    return len(head).to_bytes(8, "little") + head + code


def _of_python(index: dict[str, Entry]) -> tuple[list[tuple[str, Path]], set[str]]:
    """The modules of Python that are needed, and the methods of data classes as text.

    Compiled modules, and those that there are not, are put into the index.
    """
    lister = _LISTER.format(boot=str(checkout.lab() / "boot"))
    try:
        files, missing, texts = json.loads(run([sys.executable, "-c", lister]))
    except ValueError as error:
        raise TestbedError(f"the modules of the lab's first process can't be listed: {error}") from error
    modules: list[tuple[str, Path]] = []
    for name, file in files.items():
        if name.partition(".")[0] not in sys.stdlib_module_names or not file:
            continue
        if file.endswith(tuple(EXTENSION_SUFFIXES)):
            index[name] = ("library", (0, 0), file, False)
        elif file.endswith(".py"):
            modules.append((name, Path(file)))
    index |= dict.fromkeys(missing, ("none", (0, 0), "", False))
    return modules, set(texts)
