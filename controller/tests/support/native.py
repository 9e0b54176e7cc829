# SPDX-License-Identifier: Apache-2.0
"""The library of the controller's C code, compiled with the sanitizers."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

HOME = Path(__file__).parents[2]
FLAGS = ("-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-g")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def sanitized(made: Path) -> dict[str, str]:
    """Compile it; the environment of a process that uses it."""
    tools = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    (module,) = tools["ext-modules"]
    flags = [*module["extra-compile-args"], *(f"-I{name}" for name in module["include-dirs"])]
    subprocess.run(["gcc", *flags, *FLAGS, *SANITIZERS, "-o", str(made), *module["sources"]], cwd=HOME, check=True)
    preload = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return os.environ | {
        "TESTCTL_NATIVE": str(made), "LD_PRELOAD": preload.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0",
    }  # fmt: skip
