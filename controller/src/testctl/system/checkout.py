# SPDX-License-Identifier: Apache-2.0
"""Where the project's own files and its cache lie.

The files are lab/ and plans/, below one directory, the root: $TESTCTL_ROOT; else the package's _data/, if testctl is
installed from a wheel; else the checkout.  `testctl files DIR` makes a root of one's own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable
from testctl_agent.system.own_files import DATA, home_of
from testctl_agent.system.toolchain import cache_dir

__all__ = ["GIVEN", "cache_dir", "copy_to", "installed", "lab", "packaged", "root"]

GIVEN = "TESTCTL_ROOT"
_PACKAGE = Path(__file__).resolve().parents[1]
_HAS = "lab/kernel"
COPIED = ("lab", "plans")


@cache
def root() -> Path:
    """The directory that has lab/ and plans/.  Raises TestbedError if there is none."""
    if named := os.environ.get(GIVEN):
        if not (Path(named) / _HAS).is_dir():
            raise TestbedError(f"{GIVEN}: want a directory with {_HAS}/ in it; got {named}")
        return Path(named).resolve()
    found = home_of(_PACKAGE, _HAS)
    if found is None:
        raise TestbedError(
            f"{_PACKAGE}: want the files of lab/ in {DATA}/ or in a checkout; set {GIVEN} to a directory"
        )
    return found


def lab() -> Path:
    return root() / "lab"


def installed() -> bool:
    """Whether testctl is installed from a wheel, not from a checkout."""
    return (_PACKAGE / DATA).is_dir()


def packaged() -> bool:
    """Whether the root is that of an installed package, which is not to be changed."""
    return root() == _PACKAGE / DATA


def copy_to(place: Path) -> None:
    """Copy lab/ and plans/ to a directory, which is then a root: both or none.

    Raises PlanError if it has one of them already, or can't be written to.
    """
    for name in COPIED:
        if (place / name).exists():
            raise PlanError(f"{place / name}: want a directory without {' and '.join(COPIED)}; it is there already")
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".copy-", dir=place) as staging:
            for name in COPIED:
                shutil.copytree(root() / name, Path(staging, name), ignore=shutil.ignore_patterns("__pycache__"))
            _move_all(Path(staging), place)
    except OSError as error:
        raise PlanError(f"{place}: can't copy lab/ and plans/ there: {_reason(error)}") from error


def _move_all(staging: Path, place: Path) -> None:
    """Rename COPIED into `place`, or take back what was renamed."""
    moved: list[str] = []
    try:
        for name in COPIED:
            durable.rename(staging / name, place / name)
            moved.append(name)
    except OSError:
        for name in moved:
            durable.rename(place / name, staging / name)
        raise


def _reason(error: OSError) -> str:
    """One sentence; shutil.Error has a list of (from, to, why)."""
    found = error.args[0] if isinstance(error, shutil.Error) and error.args else None
    return str(found[0][-1]) if isinstance(found, list) and found else error.strerror or str(error)
