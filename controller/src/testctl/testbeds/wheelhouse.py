# SPDX-License-Identifier: Apache-2.0
"""The files that agents are installed from: wheels, tgen and the switch's program.

    python -m testctl.testbeds.wheelhouse DIR [--python 3.11]…
DIR/wheels has this tree's testctl_agent and what it needs, at the versions and hashes of constraints.txt;
DIR/tgen the traffic program; DIR/program the testbed program as a BPF object with its layout; DIR/digest tells whether
anything changed.  Hosts need no package index, no compiler and no checkout.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

from testctl_agent.spec.errors import TestbedError, TestctlError
from testctl_agent.switch import testbed_object
from testctl_agent.system import durable

from testctl.system import checkout
from testctl.system.subprocesses import run

AGENT = "testctl-agent"
_DIGEST = "digest"
_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==\S+(?:.*\\\n)(?:\s+--hash=\S+(?: \\)?\n?)+", re.MULTILINE)


def make(place: Path, pythons: Sequence[str]) -> bool:
    """Fill `place` atomically; returns False if it is already current.  Raises TestctlError."""
    root = checkout.root()
    program = testbed_object.compiled()
    tgen = root / "agents" / "tgen" / "tgen"
    if not tgen.exists():
        raise TestbedError(f"{tgen}: missing; make -C agents/tgen builds it")
    pinned = pins((root / "constraints.txt").read_text(encoding="utf-8"), needs(AGENT))
    digest = _digest(root / "agents", [tgen, program, program.with_name("layout.json")], [pinned, *pythons])
    if (place / _DIGEST).exists() and (place / _DIGEST).read_text(encoding="utf-8").strip() == digest:
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".new-") as name:
        new = Path(name) / place.name
        (new / "program").mkdir(parents=True)
        _wheels(root, new / "wheels", pinned, pythons, Path(name))
        shutil.copy2(tgen, new / "tgen")
        for one in (program, program.with_name("layout.json")):
            shutil.copyfile(one, new / "program" / one.name)
        (new / _DIGEST).write_text(f"{digest}\n", encoding="utf-8")
        if place.exists():
            shutil.rmtree(place)
        durable.publish(new, place)
    return True


def needs(distribution: str) -> set[str]:
    """What a distribution needs, and what that needs, without extras: normalised names."""
    found: set[str] = set()
    waiting = [distribution]
    while waiting:
        for word in metadata.requires(waiting.pop()) or []:
            name = _normal(re.split(r"[^A-Za-z0-9._-]", word, maxsplit=1)[0])
            if "extra ==" not in word and name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(constraints: str, names: Iterable[str]) -> str:
    """The lines of constraints.txt for some packages.  Raises TestbedError for one that is not pinned."""
    known = {_normal(match[1]): match[0] for match in _PACKAGE.finditer(constraints)}
    if absent := sorted(set(names) - set(known)):
        raise TestbedError(f"constraints.txt: want {', '.join(absent)}, which {AGENT} needs; got none")
    return "".join(known[name].rstrip() + "\n" for name in sorted(names))


def _digest(agents: Path, files: Sequence[Path], words: Iterable[str]) -> str:
    digest = hashlib.sha256()
    sources = [path for path in sorted((agents / "src").rglob("*")) if path.is_file() and path.suffix != ".pyc"]
    for path in [agents / "pyproject.toml", *(one for one in sources if ".egg-info" not in str(one)), *files]:
        name = path.relative_to(agents) if path.is_relative_to(agents) else Path(path.name)
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    for word in words:
        digest.update(word.encode() + b"\0")
    return digest.hexdigest()


def _wheels(root: Path, place: Path, pinned: str, pythons: Sequence[str], scratch: Path) -> None:
    """The agent's wheel is built of a copy: the checkout stays as it is."""
    source = scratch / "source"
    shutil.copytree(root / "agents" / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copyfile(root / "agents" / "pyproject.toml", source / "pyproject.toml")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(place), str(source)], timeout_s=300.0)
    requirements = scratch / "requirements.txt"
    requirements.write_text(pinned, encoding="utf-8")
    for version in pythons:
        run([*pip, "download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--python-version", version,
             "--dest", str(place), "--requirement", str(requirements)], timeout_s=600.0)  # fmt: skip


def main() -> None:
    words = argparse.ArgumentParser(prog="tools/wheelhouse", description="All that agents are installed from.")
    words.add_argument("dir", type=Path)
    words.add_argument("--python", action="append", metavar="VERSION", help="of the hosts (3.11); may be repeated")
    given = words.parse_args()
    try:
        made = make(given.dir.resolve(), given.python or ["3.11"])
    except TestctlError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    print(f"{given.dir}: {'made' if made else 'current'}")


if __name__ == "__main__":
    main()
