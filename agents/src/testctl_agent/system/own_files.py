# SPDX-License-Identifier: Apache-2.0
"""Where the project's files that are not Python modules lie: in an installed package, or in the checkout.

A wheel has what its package needs below the package's _data/, under the names of the checkout (setup.py).  In an
editable installation there is no _data/, and the files of the checkout are used.
"""

from __future__ import annotations

from pathlib import Path

DATA = "_data"


def home_of(package: Path, name: str) -> Path | None:
    """The directory that a file or directory such as p4/build lies in; None if it is in neither place.

    package: the package's own directory
    """
    for place in (package / DATA, *package.parents):
        if (place / name).exists():
            return place
    return None


def agents_file(name: str) -> Path | None:
    """A file or directory that the agents need, by its name in the checkout; None if it does not exist."""
    home = home_of(Path(__file__).resolve().parents[1], name)
    return home / name if home else None
