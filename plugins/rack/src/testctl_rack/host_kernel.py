# SPDX-License-Identifier: Apache-2.0
"""A kernel of the user's tree as a Debian package for the hosts of a rack.

The tree is built as it is, with O= in the cache: nothing is written into it.  Objects are kept for each tree and name,
so the next build compiles what changed; a package that has the same inputs as the last one is that one.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from testctl.lab import make
from testctl.lab.make import Progress
from testctl.lab.source import KernelSource
from testctl.lab.workplace import finishing, lock
from testctl.system import checkout
from testctl.system.subprocesses import ENDS_WITH_US, run
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl_rack import host_config, host_name

STEPS = 4000
"""Approximate number of lines that a build prints; used only for the progress display."""

PROGRAMS = {
    "make": "make", "gcc": "gcc", "ld": "binutils", "bc": "bc", "bison": "bison", "flex": "flex", "perl": "perl",
    "dpkg-buildpackage": "dpkg-dev", "dh_builddeb": "debhelper", "rsync": "rsync", "cpio": "cpio", "depmod": "kmod",
}  # fmt: skip
"""What builds a package needs → its Debian package."""
HEADERS = {"gelf.h": "libelf-dev", "openssl/opensslv.h": "libssl-dev"}

IN_TREE = (".config", "include/config", "arch/x86/include/generated")
"""What a build in a tree leaves there; make O= refuses such a tree."""

BUILT = "built.json"
MODULES = "lsmod"
CONFIG = "config"
"""Files in the directory of a tree and a name: the last package; the hosts' modules and configuration."""


@dataclass(frozen=True)
class Wanted:
    """What a package is built from.

    tree        the source tree
    version     of the tree, 6.12.117
    config      a configuration of a kernel
    modules     those that the configuration is reduced to; None: it stays as it is
    debug_info  with debug information, also where there is no pahole
    """

    name: str
    tree: Path
    version: str
    config: str
    modules: frozenset[str] | None
    debug_info: bool = False


@dataclass(frozen=True)
class Package:
    """A package; new: whether it was built now; lacking: options that the project wants and the tree can't have."""

    path: Path
    release: str
    new: bool
    lacking: tuple[str, ...] = ()


def version_of(tree: Path) -> str:
    """The version of a source tree, 6.12.117.  Raises PlanError for anything else, and for one that was built in."""
    wrong = f"--from {tree}: want the source tree of a Linux kernel (a Makefile with VERSION, and Kconfig)"
    if not tree.is_dir():
        raise PlanError(f"{wrong}; there is no such directory")
    for name in ("Makefile", "Kconfig"):
        if not (tree / name).is_file():
            raise PlanError(f"{wrong}; it has no {name}")
    text = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")
    parts = dict(re.findall(r"^(\w+) *= *(\S*)$", text, re.MULTILINE)[:8])
    if not (parts.get("VERSION", "").isdecimal() and parts.get("PATCHLEVEL", "").isdecimal()):
        raise PlanError(f"{wrong}; its Makefile has no VERSION and PATCHLEVEL")
    if there := [name for name in IN_TREE if (tree / name).exists()]:
        raise PlanError(
            f"--from {tree}: want a tree in which nothing was built: make O= refuses others as not clean; got "
            f"{', '.join(there)} there (make -C {tree} mrproper removes that and all else that was built)"
        )
    return ".".join(parts[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if parts.get(name))


def check_programs() -> None:
    """Raises TestbedError with the Debian packages that are missing to build one."""
    if platform.machine() != "x86_64":
        raise TestbedError(f"kernel install: want a controller of the hosts' kind, x86_64; got {platform.machine()}")
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program, path=path)]
    places = (Path("/usr/include"), Path("/usr/include/x86_64-linux-gnu"))
    missing += [package for name, package in HEADERS.items() if not any((place / name).exists() for place in places)]
    if missing:
        raise TestbedError(
            f"kernel install: want Debian's packages {', '.join(missing)} on this controller, to package a kernel; "
            f"got none of them: apt-get install {' '.join(missing)}"
        )


def home(tree: Path, name: str) -> Path:
    """The directory of a tree and a name in the cache."""
    digest = hashlib.sha256(str(tree.resolve()).encode()).hexdigest()[:12]
    return checkout.cache_dir() / "host-kernels" / f"{name}-{digest}"


def known(tree: Path, name: str) -> tuple[str, frozenset[str]]:
    """(the configuration, the modules) of hosts that the last build of a tree and a name had; ("", none) before it."""
    place = home(tree, name)
    try:
        config, modules = ((place / file).read_text(encoding="utf-8") for file in (CONFIG, MODULES))
    except OSError:
        return "", frozenset()
    return config, frozenset(host_config.modules_in(modules))


def build(wanted: Wanted, progress: Progress, jobs: int) -> Package:
    """Build the package, unless the last one has the same inputs.

    Raises TestbedError with the first error of make, a wrong line of the configuration, or with options of hosts/
    that the tree can't have.
    """
    host_config.check(wanted.config)
    place = home(wanted.tree, wanted.name)
    with lock(place.with_name(f"{place.name}.lock"), lambda: progress("wait for another build of it", 0, STEPS)):
        place.mkdir(parents=True, exist_ok=True)
        key = _key(wanted)
        if (package := _last(place, key)) is not None:
            return package
        make.check_space(place)
        with finishing(place):
            progress(f"configure kernel {wanted.name}", 0, STEPS)
            lacking = _configure(wanted, place)
            return _package(wanted, place, key, lacking, progress, jobs)


def _key(wanted: Wanted) -> str:
    """A hash of all that determines a package."""
    types = host_config.with_types(wanted.debug_info)
    must, may = host_config.fragments(types=types)
    modules = None if wanted.modules is None else sorted(wanted.modules)
    parts = [
        wanted.name, KernelSource(wanted.name, wanted.tree.resolve()).fingerprint(), wanted.config, modules, types,
        run(["gcc", "--version"]), host_config.shared(), *(file.read_text(encoding="utf-8") for file in (*must, *may)),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def _last(place: Path, key: str) -> Package | None:
    try:
        built = json.loads((place / BUILT).read_text(encoding="utf-8"))
        package = Package(place / str(built["file"]), str(built["release"]), False, tuple(built["lacking"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return package if built["key"] == key and package.path.is_file() else None


def _make(place: Path) -> list[str]:
    return [*ENDS_WITH_US, "make", "ARCH=x86_64", f"O={place / 'objects'}", "LOCALVERSION="]


def _configure(wanted: Wanted, place: Path) -> list[str]:
    """The hosts' configuration, reduced, with the fragments over it; the options that the tree can't have."""
    objects, argv, tree = place / "objects", _make(place), wanted.tree.resolve()
    objects.mkdir(exist_ok=True)
    config = objects / ".config"
    config.write_text(wanted.config, encoding="utf-8")
    run([*argv, "olddefconfig"], cwd=tree, timeout_s=make.CONFIGURE_S)
    if wanted.modules is not None:
        durable.write(place / CONFIG, wanted.config.encode())  # later builds believe them
        durable.write(place / MODULES, host_config.lsmod(wanted.modules).encode())
        answers = "\n" * 5000  # to what the reduced configuration leaves open: the default
        run([*argv, f"LSMOD={place / MODULES}", "localmodconfig"], cwd=tree, stdin=answers, timeout_s=make.CONFIGURE_S)
    shared, named = place / "shared.config", place / "name.config"
    shared.write_text(host_config.shared(), encoding="utf-8")
    named.write_text(f'CONFIG_LOCALVERSION="{host_name.local_version(wanted.name)}"\n', encoding="utf-8")
    must, may = host_config.fragments(types=host_config.with_types(wanted.debug_info))
    make.merge(argv, tree, objects, [shared, *must, *may, named])
    have = set(config.read_text(encoding="utf-8").splitlines())
    if lost := _missing(have, (shared, *must, named)):
        raise TestbedError(f"--from {wanted.tree}: this tree can't have {', '.join(lost)} ({config})")
    return _missing(have, may if host_config.with_types(wanted.debug_info) else may[:1])


def _missing(have: Collection[str], files: Iterable[Path]) -> list[str]:
    """The options of fragments that a configuration lacks; one that is to be a key is no loss where it is absent."""
    given = {line.partition("=")[0] for line in have}
    wanted = [line for file in files for line in make.options(file) if line not in have]
    return [line for line in wanted if '="' not in line or line.partition("=")[0] in given]


def _package(wanted: Wanted, place: Path, key: str, lacking: list[str], progress: Progress, jobs: int) -> Package:
    (place / BUILT).unlink(missing_ok=True)
    for file in place.glob("*.deb"):
        file.unlink()
    # Later builds have higher versions, so that apt takes them for upgrades.
    version = time.strftime(f"%Y%m%d.%H%M%S-testctl.{key}", time.gmtime())
    argv = [*_make(place), f"-j{jobs}", *make.compiler(), f"KDEB_PKGVERSION={version}", "DPKG_FLAGS=-d",
            "KDEB_COMPRESS=gzip", "KDEB_CHANGELOG_DIST=unstable", "bindeb-pkg"]  # fmt: skip
    env = make.remembered(place) | {
        "DEB_BUILD_PROFILES": "pkg.linux-upstream.nokernelheaders pkg.linux-upstream.nokerneldbg",
        "DEBFULLNAME": "testctl kernel install", "DEBEMAIL": "testctl@localhost", "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1", "GIT_OPTIONAL_LOCKS": "0", "KBUILD_VERBOSE": "0",
    }  # fmt: skip
    log = place / "build.log"
    make.build(argv, f"kernel {wanted.name}", progress, STEPS, log=log, env=env, cwd=wanted.tree.resolve())
    release = (place / "objects" / "include/config/kernel.release").read_text(encoding="ascii").strip()
    if host_name.name_of(release) != wanted.name:
        raise TestbedError(f"kernel {wanted.name}: want a release that ends in -{wanted.name}; got {release} ({log})")
    packages = list(place.glob(f"{host_name.PACKAGE}{release}_*.deb"))
    if len(packages) != 1:
        want = f"want {host_name.PACKAGE}{release}_….deb in {place}"
        raise TestbedError(f"kernel {wanted.name}: {want}; got none ({log})")
    for file in place.glob("linux-*_*"):  # .buildinfo, .changes, linux-libc-dev
        if file != packages[0]:
            file.unlink()
    built = {"key": key, "file": packages[0].name, "release": release, "lacking": lacking}
    durable.write(place / BUILT, json.dumps(built).encode())
    return Package(packages[0], release, True, tuple(lacking))
