# SPDX-License-Identifier: Apache-2.0
"""Which agent this is: its version and a hash of its code, so that controller and agents are of one tree."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from testctl_agent import __version__
from testctl_agent.spec.errors import TestbedError


@functools.cache
def version(packages: tuple[str, ...] = ()) -> str:
    """ "0.1.0+" and a hash of every Python file of the agent's package and of `packages`.

    packages: of other distributions whose generators and back end an agent's configuration names
    (params/words.py); an agent runs no others.  Raises TestbedError for one that is not there.
    """
    import hashlib  # brings OpenSSL; a lab does not compute its version

    digest = hashlib.sha256()
    for root in (Path(__file__).parents[1], *(place for name in packages for place in _places(name))):
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def _places(package: str) -> Iterator[Path]:
    """The directories, or the file, of a top-level package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not (spec.submodule_search_locations or spec.has_location):
        raise TestbedError(f"package {package}: want its files; got none")
    yield from map(Path, spec.submodule_search_locations or [str(spec.origin)])
