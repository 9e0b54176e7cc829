# SPDX-License-Identifier: Apache-2.0
"""Puts files of the checkout that the package needs into its wheel and its sdist.

pyproject.toml names them (tool.testctl.data).  A wheel has them below the package's _data/, an sdist below data/, by
their names in the checkout.  An editable installation uses the checkout's.  controller/setup.py is a link
to this file, in an sdist a copy.

`program` is built by make in its directory; a wheel has it, an sdist its `sources`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).absolute().parent  # a link is not followed
DATA = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["testctl"]["data"]
IN_SDIST = "data"
PACKED = HERE / IN_SDIST
ROOT = PACKED if PACKED.is_dir() else HERE.parent
"""The sdist that this is, or the checkout."""
PROGRAM = [DATA["program"]] if "program" in DATA else []


def copy_data(where: Path, patterns: list[str]) -> None:
    for pattern in patterns:
        found = [path for path in ROOT.glob(pattern) if path.is_file() and "__pycache__" not in path.parts]
        if not found:
            sys.exit(f"{ROOT}: want {pattern}; got no file: build from a checkout or from an sdist")
        for path in found:
            copy = where / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)


def build_program() -> None:
    for name in PROGRAM:
        if absent := [tool for tool in ("make", "gcc") if shutil.which(tool) is None]:
            sys.exit(f"{name} can't be built: {absent[0]} is not installed (Debian: apt install build-essential)")
        place = ROOT / name
        subprocess.run(["make", "--silent", "-C", str(place.parent), place.name], check=True)


class BuildWithData(build_py):
    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # of an earlier build: files that no longer exist
        super().run()
        build_program()
        if not self.editable_mode:
            copy_data(Path(self.build_lib) / DATA["package"] / "_data", DATA["files"] + PROGRAM)


class SdistWithData(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        copy_data(Path(base_dir) / IN_SDIST, DATA["files"] + DATA.get("sources", []))
        (Path(base_dir) / "setup.py").unlink()
        shutil.copy(HERE / "setup.py", base_dir)


class WheelOfAMachine(bdist_wheel):
    """One with a program: for every Python 3 on machines of this kind."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class WithProgram(Distribution):
    def has_ext_modules(self) -> bool:
        return True


COMMANDS = {"build_py": BuildWithData, "sdist": SdistWithData}
if PROGRAM:
    setup(cmdclass=COMMANDS | {"bdist_wheel": WheelOfAMachine}, distclass=WithProgram)
else:
    setup(cmdclass=COMMANDS)
