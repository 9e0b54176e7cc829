# SPDX-License-Identifier: Apache-2.0
"""The files that agents are installed from: wheels, tgen and the switch's program.

    python -m testctl_rack.wheelhouse DIR [--python 3.11]… [--backend s1=tofino]… [--generators alpha=trex]…
DIR/wheels has this tree's testctl_agent, the distributions that bring the named back ends and generators, and what
they need, at the versions and hashes of constraints.txt, and requirements.txt, which says what to install; DIR/pip what
installs them; DIR/tgen the traffic program; DIR/program the testbed program as a BPF object with its layout; DIR/digest
tells whether anything changed.  DIR/agent.tar has all of it: a host gets one file.  Hosts need no package index, no
compiler and no checkout.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from testctl.system import checkout
from testctl.system.subprocesses import run
from testctl.system.temporary import temporary
from testctl_agent.params import others
from testctl_agent.spec.errors import TestbedError, TestctlError
from testctl_agent.switch import testbed_object
from testctl_agent.system import durable, tgen_program
from testctl_agent.system.entry_points import BACKENDS, GENERATORS, Group

from testctl_rack import inventory_file

AGENT = "testctl-agent"
REQUIREMENTS = "requirements.txt"
ARCHIVE = "agent.tar"
INSTALLED = "installed"
"""On a host: the digest of what is installed."""
_PIP = "pip"
_DIGEST = "digest"
_EXTRA = re.compile(r"""extra == ["']([^"']+)["']""")
_PYPY = re.compile(r"""implementation_name == ["']pypy["']""")
"""Of what hosts, which have CPython, do not need."""
_GENERATED = re.compile(r"(^|/)(\.|build/|dist/|__pycache__/|[^/]+\.egg-info/)|\.pyc$")
_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==\S+(?:.*\\\n)(?:\s+--hash=\S+(?: \\)?\n?)+", re.MULTILINE)


@dataclass(frozen=True)
class Project:
    """A distribution that is built from its directory.

    extras  its optional dependencies that are wanted: the back ends and generators that need one each
    """

    name: str
    directory: Path
    extras: tuple[str, ...] = ()

    @property
    def requirement(self) -> str:
        return f"{self.name}[{','.join(self.extras)}]" if self.extras else self.name

    def files(self) -> dict[str, Path]:
        """What its wheel is built of: the files of the directory, and all below src, or below all where it has none."""
        below = self.directory / "src" if (self.directory / "src").is_dir() else self.directory
        paths = [*self.directory.iterdir(), *below.rglob("*")]
        names = {str(path.relative_to(self.directory)): path for path in paths if path.is_file()}
        if self.name == AGENT:  # its setup.py adds files that a deployed agent gets in addition to its wheel
            names.pop("setup.py", None)
        return {name: names[name] for name in sorted(names) if not _GENERATED.search(name)}


def projects(machines: Iterable[tuple[str, tuple[str, ...]]]) -> list[Project]:
    """The agent, and the distributions that bring machines' back ends and generators which are not the agent's own.

    Raises TestbedError.
    """
    brought = set[tuple[Group, str]]()
    for backend, generators in machines:
        brought |= {(BACKENDS, name) for name in others.backend().brought([backend] if backend else [])}
        brought |= {(GENERATORS, name) for name in others.generator().brought(generators)}
    wanted: dict[str, set[str]] = {}
    for group, name in brought:
        wanted.setdefault(group.distribution(name), set()).add(name)
    made = [Project(AGENT, checkout.root() / "agents", ("daemon",))]
    for distribution, names in sorted(wanted.items()):
        optional = metadata.metadata(distribution).get_all("Provides-Extra") or []
        made.append(Project(distribution, _directory(distribution), tuple(sorted(names.intersection(optional)))))
    return made


def _directory(name: str) -> Path:
    """Where a distribution was installed from (PEP 610).  Raises TestbedError when that is no directory."""
    origin = json.loads(metadata.distribution(name).read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    if url.scheme != "file" or "dir_info" not in origin:
        raise TestbedError(f"{name}: want it installed from a directory (pip install -e DIR), to build its wheel")
    return Path(unquote(url.path))


def make(place: Path, pythons: Sequence[str], wanted: Sequence[Project]) -> bool:
    """Fill `place` atomically; returns False if it is already current.  Raises TestctlError."""
    root = checkout.root()
    program = testbed_object.path()
    if not (root / "agents" / "src").is_dir():
        raise TestbedError(f"{root}: agents' wheels are made of a checkout; set TESTCTL_ROOT to one, or work in it")
    tgen = Path(tgen_program.ready())
    names = {need for project in wanted for need in needs(project.name, project.extras)}
    names -= {normal(project.name) for project in wanted}
    pinned = pins((root / "constraints.txt").read_text(encoding="utf-8"), names | {_PIP})
    installed = [project.requirement for project in wanted]
    digest = _digest(wanted, [tgen, program, program.with_name("layout.json")], [pinned, *pythons, *installed])
    if (place / _DIGEST).exists() and (place / _DIGEST).read_text(encoding="utf-8").strip() == digest:
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    with temporary(".new-", place.parent) as home:
        new = home / place.name
        (new / "program").mkdir(parents=True)
        _wheels(wanted, new / "wheels", pinned, pythons, home)
        _unpack_pip(new)
        (new / "wheels" / REQUIREMENTS).write_text(
            "".join(f"{requirement}\n" for requirement in installed), encoding="utf-8"
        )
        shutil.copy2(tgen, new / "tgen")
        shutil.copyfile(program, new / "program" / "program.o")
        shutil.copyfile(program.with_name("layout.json"), new / "program" / "layout.json")
        (new / _DIGEST).write_text(f"{digest}\n", encoding="utf-8")
        _archive(new)
        if place.exists():
            shutil.rmtree(place)
        durable.publish(new, place)
    return True


def needs(distribution: str, extras: Sequence[str] = ()) -> set[str]:
    """What a distribution needs with some of its extras, and what that needs, without extras: normalised names."""
    needed: set[str] = set()
    waiting = [(distribution, frozenset(extras))]
    while waiting:
        package, wanted = waiting.pop()
        for requirement in metadata.requires(package) or []:
            if _PYPY.search(requirement):
                continue
            name = normal(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0])
            extra = _EXTRA.search(requirement)
            if (extra is None or extra[1] in wanted) and name not in needed:
                needed.add(name)
                waiting.append((name, frozenset()))
    return needed


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(constraints: str, names: Iterable[str]) -> str:
    """The lines of constraints.txt for some packages.  Raises TestbedError for one that is not pinned."""
    known = {normal(match[1]): match[0] for match in _PACKAGE.finditer(constraints)}
    if absent := sorted(set(names) - set(known)):
        raise TestbedError(f"constraints.txt: want {', '.join(absent)}, which the agents need; got none")
    return "".join(known[name].rstrip() + "\n" for name in sorted(names))


def _digest(wanted: Iterable[Project], files: Sequence[Path], texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    of_projects = [item for project in wanted for item in project.files().items()]
    for name, path in [*of_projects, *((file.name, file) for file in files)]:
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def _wheels(wanted: Iterable[Project], place: Path, pinned: str, pythons: Sequence[str], scratch: Path) -> None:
    """Each project's wheel is built of a copy: its directory stays as it is."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(place)]
    for project in wanted:
        source = scratch / "source" / project.name
        for name, path in project.files().items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, source / name)
        run([*pip, *build, str(source)], timeout_s=300.0)
    requirements = scratch / "requirements.txt"
    requirements.write_text(pinned, encoding="utf-8")
    for version in pythons:
        run([*pip, "download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--python-version", version,
             "--dest", str(place), "--requirement", str(requirements)], timeout_s=600.0)  # fmt: skip


def _unpack_pip(place: Path) -> None:
    """Pip as a directory: from its wheel it would take a host twice the time, and a host need not have one."""
    for wheel in (place / "wheels").glob("pip-*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(place / _PIP)
        wheel.unlink()


def _archive(place: Path) -> None:
    """All files of a directory in one archive beside them, root's, with the modes that a host needs.

    An empty file `installed` comes first: a host on which an installation was interrupted has no version.
    """

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mode = 0o755 if member.isdir() or member.name == "tgen" else 0o644
        return member

    names = sorted(path.name for path in place.iterdir())
    with tarfile.open(place / ARCHIVE, "w") as archive:
        archive.addfile(plain(tarfile.TarInfo(INSTALLED)))
        for name in names:
            archive.add(place / name, name, filter=plain)


def _of_switch(word: str) -> tuple[str, tuple[str, ...]]:
    """(back end, no generators) of "s1=tofino".  Raises PlanError."""
    name, _, backend = word.partition("=")
    return inventory_file.software("switch", name, {"testctl_backend": backend})


def _of_host(word: str) -> tuple[str, tuple[str, ...]]:
    """(no back end, generators) of "alpha=trex,other".  Raises PlanError."""
    name, _, generators = word.partition("=")
    return inventory_file.software("host", name, {"testctl_generators": [*filter(None, generators.split(","))]})


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="plugins/rack/tools/wheelhouse", description="All that agents are installed from."
    )
    parser.add_argument("dir", type=Path)
    parser.add_argument("--python", action="append", metavar="VERSION", help="of the hosts (3.11); may be repeated")
    parser.add_argument("--backend", action="append", default=[], metavar="SWITCH=NAME", help="its testctl_backend")
    parser.add_argument(
        "--generators", action="append", default=[], metavar="HOST=NAME,…", help="its testctl_generators; may be empty"
    )
    given = parser.parse_args()
    try:
        machines = [_of_switch(word) for word in given.backend] + [_of_host(word) for word in given.generators]
        made = make(given.dir.resolve(), given.python or ["3.11"], projects(machines))
    except TestctlError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    print(f"{given.dir}: {'made' if made else 'current'}")


if __name__ == "__main__":
    main()
