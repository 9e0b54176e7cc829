# SPDX-License-Identifier: Apache-2.0
"""packetdrill's scripts: where they lie, in which variants each is run, and the program that runs them."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestbedError

GIVEN = "TESTCTL_PACKETDRILL"
"""In the environment: the program, where it is not on PATH."""
IN_TREE = "tools/testing/selftests/net/packetdrill"
"""Where a kernel's tree has scripts of its own, since 6.12."""
RUNNER = "ksft_runner.sh"
"""The tree's program that runs one of them: it has the options of each variant."""
NEEDS = {"ip": "iproute2", "tc": "iproute2", "sysctl": "procps", "ifconfig": "net-tools", "unshare": "util-linux"}
"""Programs that packetdrill and the scripts' defaults start, and Debian's packages of them."""
_ADDRESSES = "--local_ip=192.168.0.1 --gateway_ip=192.168.0.1 --netmask_ip=255.255.0.0 --remote_ip=192.0.2.1"
_COOKIES = {"ipv4": "3021b9d889017eeb", "ipv6": "c1d1e9742a47a9bc"}
_PLAIN = {
    "ipv4": f"--ip_version=ipv4 {_ADDRESSES} -D TFO_COOKIE={_COOKIES['ipv4']} -D CODE=host_unreachable "
    "-D CMSG_LEVEL_IP=SOL_IP -D CMSG_TYPE_RECVERR=IP_RECVERR",
    "ipv6": "--ip_version=ipv6 --mtu=1520 --local_ip=fd3d:0a0b:17d6::1 --gateway_ip=fd3d:0a0b:17d6:8888::1 "
    f"--remote_ip=fd3d:fa7b:d17d::1 -D TFO_COOKIE={_COOKIES['ipv6']} "
    "-D CMSG_LEVEL_IP=SOL_IPV6 -D CMSG_TYPE_RECVERR=IPV6_RECVERR",
    "ipv4-mapped-ipv6": f"--ip_version=ipv4-mapped-ipv6 {_ADDRESSES} -D TFO_COOKIE={_COOKIES['ipv4']} "
    "-D CODE=host_unreachable -D CMSG_LEVEL_IP=SOL_IPV6 -D CMSG_TYPE_RECVERR=IPV6_RECVERR",
}
PLAIN = {name: tuple(options.split()) for name, options in _PLAIN.items()}
"""The variants of scripts that have no runner, with the options of packetdrill's own, run_all.py: IPv6 has an MTU with
which the MSS equals IPv4's."""
TMP = Path("/tmp")
"""Is empty and writable for a case."""

_VARIABLE = re.compile(r"declare -A ip_args=\((.*?)^\)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r'\[([\w-]+)\]="([^"]*)"')
_ARRAY = re.compile(r"^readonly (ipv[\w-]+)_args=\((.*?)\)$", re.DOTALL | re.MULTILINE)
"""As 6.12 to 6.16 have them, one for each variant."""
_OWN = re.compile(r"^--ip_version=(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A script in a variant.  options: packetdrill's, before the script's name."""

    script: Path
    variant: str
    options: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.script.name} {self.variant}"

    @property
    def kept(self) -> str:
        """The directory below /tmp that the script lies in, which it has there too, or ""."""
        return str(TMP / self.script.relative_to(TMP).parts[0]) if self.script.is_relative_to(TMP) else ""

    @property
    def argv(self) -> tuple[str, ...]:
        """packetdrill's arguments, in the script's directory."""
        return (*self.options, self.script.name)


@dataclass(frozen=True)
class CaseEnd:
    """How a case ended.

    verdict  pass, fail, or broken: it shows nothing of the kernel
    text     packetdrill's output, or why it is broken
    """

    case: Case
    verdict: str
    text: str = ""
    virtual_s: float = 0.0


def program() -> Path:
    """packetdrill, from the environment or PATH.  Raises TestbedError where it is missing."""
    given = os.environ.get(GIVEN)
    if given is not None:
        if not (Path(given).is_file() and os.access(given, os.X_OK)):
            raise TestbedError(f"{GIVEN}: want the program packetdrill; got {given!r}, which can't be executed")
        return Path(given).resolve()
    path = shutil.which("packetdrill")
    if path is None:
        raise TestbedError(
            "packetdrill is not on PATH. No package has it: build it from its source, "
            f"https://github.com/google/packetdrill, and set {GIVEN} to the program"
        )
    return Path(path).resolve()


def fingerprint(of: Path) -> str:
    """Which packetdrill it is: it has no version of its own."""
    return f"{of} (sha256 {hashlib.sha256(of.read_bytes()).hexdigest()[:12]})"


def check_needs(path: str) -> None:
    """Raises TestbedError for a program that is not in PATH."""
    for name, package in NEEDS.items():
        if shutil.which(name, path=path) is None:
            raise TestbedError(f"packetdrill starts {name}, which is not in {path} (Debian's package {package})")


def scripts_of(paths: Sequence[str], tree: Path | None) -> list[Path]:
    """The scripts that paths mean, each once: a file, a directory with scripts, or a name in the tree's directory.

    No paths: all scripts of the tree.  Raises PlanError.
    """
    if not paths and tree is None:
        raise PlanError(f"want the PATH of scripts: this kernel's source has no {IN_TREE}")
    scripts = [script for name in paths or [str(tree)] for script in _scripts_of(name, tree)]
    return list(dict.fromkeys(scripts))


def _scripts_of(name: str, tree: Path | None) -> list[Path]:
    path = Path(name)
    if name and path.is_dir():
        scripts = sorted(path.resolve().glob("**/*.pkt"))
        if not scripts:
            raise PlanError(f"{name}: want a directory with scripts, *.pkt; it has none")
        return scripts
    if path.is_file():
        return [path.resolve()]
    in_tree = sorted(tree.glob(name)) if tree is not None and name and not path.is_absolute() else []
    scripts = [path for path in in_tree if path.is_file() and path.suffix == ".pkt"]
    if not scripts:
        where = f", and no script of that name in {tree}" if tree else ""
        raise PlanError(f"{name!r}: want a script or a directory; there is no such file{where}")
    return scripts


def cases_of(scripts: Iterable[Path], tree: Path | None) -> list[Case]:
    """Every script in its variants, by the runner in its directory, else by the tree's."""
    cases = []
    for script in scripts:
        try:
            text = script.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise PlanError(f"{script}: can't be read: {error.strerror}") from error
        places = (script.parent / RUNNER, *([tree / RUNNER] if tree else []))
        runner = next((place for place in places if place.is_file()), None)
        every = variants(runner.read_text(encoding="utf-8", errors="replace"), runner) if runner else PLAIN
        if script.parent == TMP:
            raise PlanError(
                f"{script}: want a script in a directory of its own; got one in {TMP}, which a case has empty"
            )
        own = _OWN.findall(text)
        if any(name not in every for name in own):
            raise PlanError(f"{script}: want --ip_version={' or '.join(every)}; got {own[0]}")
        cases += [Case(script, name, every[name]) for name in own or every]
    return cases


def variants(text: str, where: Path) -> Mapping[str, tuple[str, ...]]:
    """{name: packetdrill's options} from the text of a tree's runner.  Raises TestbedError if it has none."""
    block = _VARIABLE.search(text)
    arrays = [(name, " ".join(shlex.split(options))) for name, options in _ARRAY.findall(text)]
    entries = _ENTRY.findall(block[1]) if block else arrays
    if not entries:
        raise TestbedError(f"{where}: want the words of each variant, in an array ip_args or ipv4_args; there is none")
    return {name: tuple(shlex.split(options)) for name, options in entries}


def grouped(cases: Sequence[Case], scripts: int) -> list[list[Case]]:
    """The cases in groups of that many scripts, in order: a group does not depend on how many labs there are."""
    order = list(dict.fromkeys(case.script for case in cases))
    number = {script: index // scripts for index, script in enumerate(order)}
    groups: dict[int, list[Case]] = {}
    for case in cases:
        groups.setdefault(number[case.script], []).append(case)
    return list(groups.values())
