# SPDX-License-Identifier: Apache-2.0
"""Puts files of the checkout that the package needs into its wheel and its sdist.

pyproject.toml names them (tool.testctl.data).  A wheel has them below the package's _data/, an sdist below data/, by
their names in the checkout.  An editable installation uses the checkout's.  agents/ and controller/ have the same file.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
DATA = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["testctl"]["data"]
IN_SDIST = "data"


def copy_data(where: Path) -> None:
    """Copy the files to a directory; they come from the sdist that this is, or from the checkout."""
    packed = HERE / IN_SDIST
    root = packed if packed.is_dir() else HERE.parent
    for pattern in DATA["files"]:
        found = [path for path in root.glob(pattern) if path.is_file() and "__pycache__" not in path.parts]
        if not found:
            sys.exit(f"{root}: want {pattern}; got no file: build from a checkout or from an sdist")
        for path in found:
            copy = where / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


class BuildWithData(build_py):
    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # of an earlier build: files that no longer exist
        super().run()
        if not self.editable_mode:
            copy_data(Path(self.build_lib) / DATA["package"] / "_data")


class SdistWithData(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        copy_data(Path(base_dir) / IN_SDIST)


setup(cmdclass={"build_py": BuildWithData, "sdist": SdistWithData})
