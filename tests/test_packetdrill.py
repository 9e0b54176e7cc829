# SPDX-License-Identifier: Apache-2.0
"""`testctl packetdrill`: its scripts in the lab, with its own words; skipped where it is not installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from testctl.lab.packetdrill import GIVEN
from testctl.system.temporary import temporary

from tests.cli_commands import call

pytestmark = pytest.mark.lab
real = pytest.mark.skipif(
    not (os.environ.get(GIVEN) or shutil.which("packetdrill")),
    reason=f"packetdrill is not on PATH, nor named by {GIVEN}",
)

RUNNER = """declare -A ip_args=(
\t[ipv4]="--ip_version=ipv4"
\t[ipv6]="--ip_version=ipv6"
)
"""
NOTHING = """+0    fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0    read(4, ..., 100) = {read}
"""
BLOCKING = """+0...0.300 read(4, ..., 100) = 10
+.3   < P. 1:11(10) ack 1 win 257
+0    > . 1:1(0) ack 11
"""
CONNECT = """
0     socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0    setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0    bind(3, ..., ...) = 0
+0    listen(3, 1) = 0
+0    < S 0:0(0) win 32792 <mss 1000,nop,wscale 7>
+0    > S. 0:0(0) ack 1 <...>
+.1   < . 1:1(0) ack 1 win 257
+0    accept(3, ..., ...) = 4
"""


def packetdrill(*words: str, code: int = 0, **environment: object) -> subprocess.CompletedProcess[str]:
    return call(Path.cwd(), "packetdrill", *words, code=code, **environment)


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """Scripts of which one passes, one waits in a system call, and one expects what does not happen."""
    home = tmp_path / "scripts"
    home.mkdir()
    (home / "ksft_runner.sh").write_text(RUNNER)
    passes = NOTHING.format(read="-1 EAGAIN (Resource temporarily unavailable)")
    (home / "a_passes.pkt").write_text(f"--ip_version=ipv4\n{CONNECT}{passes}")
    (home / "b_blocks.pkt").write_text(CONNECT + BLOCKING)
    (home / "c_fails.pkt").write_text(f"--ip_version=ipv6\n{CONNECT}{NOTHING.format(read=5)}")
    return home


@real
@pytest.mark.parametrize("kernel", ["6.12"])
def test_verdicts_and_words(scripts: Path, tmp_path: Path, kernel: str) -> None:
    """The same on every run, whatever else the machine does; a warning of the kernel would be a failure, too."""
    junit = tmp_path / "junit.xml"
    words = [str(scripts), "--kernel", kernel, "--json"]
    first = json.loads(packetdrill(*words, "--jobs", "2", "--junit", str(junit), code=1).stdout)
    found = {(Path(case["script"]).stem, case["variant"]): case for case in first["cases"]}
    assert [(name, case["verdict"]) for name, case in found.items()] == [
        (("a_passes", "ipv4"), "pass"),
        (("b_blocks", "ipv4"), "pass"), (("b_blocks", "ipv6"), "pass"),
        (("c_fails", "ipv6"), "fail"),
    ]  # fmt: skip
    assert (
        "c_fails.pkt:12: runtime error in read call: Expected result 5 but got -1" in found["c_fails", "ipv6"]["words"]
    )
    again = json.loads(packetdrill(*words, "--jobs", "1", code=1).stdout)
    assert again == first, "with virtual times"
    cases = ET.parse(junit).getroot().findall("./testsuite/testcase")
    assert [case.find("failure") is not None for case in cases] == [False, False, False, True]


@real
def test_what_can_not_be_run_stops_nothing(scripts: Path) -> None:
    """A script that does not parse, and one that never ends: the others have their verdicts."""
    (scripts / "b_blocks.pkt").write_text("--ip_version=ipv4\n0 soket(..., = 3\n")
    (scripts / "c_fails.pkt").write_text("--ip_version=ipv4\n0 `while :; do :; done`\n")
    said = packetdrill(str(scripts), "--timeout", "5", code=3).stdout
    assert "a_passes.pkt" in said
    assert "1 passed, 0 failed, 2 could not be run" in said
    assert "! b_blocks.pkt ipv4: packetdrill can't parse it: b_blocks.pkt:2: parse error at" in said
    assert "! c_fails.pkt ipv4: did not end within 5 s of wall time" in said


STAND_IN = """#!/bin/sh
[ "$1" = --dry_run ] && exit 0
for name; do :; done
exec sh "$name"
"""


def test_helpers_of_a_script_below_tmp() -> None:
    """The program stands for packetdrill: it runs the script's lines, and prints what packetdrill prints."""
    with temporary("testctl-test-") as home:
        program = home / "packetdrill"
        program.write_text(STAND_IN)
        program.chmod(0o755)
        (home / "scripts").mkdir()
        (home / "helper").write_text("echo kept\n")
        (home / "scripts" / "a.pkt").write_text(
            "--ip_version=ipv4 2>/dev/null\nsh ../helper >/tmp/mine && grep -q kept /tmp/mine\n"
        )
        why = "assertion len >= sizeof(struct _tcp_info) failed at code.c line 148"
        (home / "scripts" / "b.pkt").write_text(
            f"--ip_version=ipv4 2>/dev/null\necho a warning >&2; echo '{why}' >&2; exit 1\n"
        )
        done = packetdrill(str(home / "scripts"), code=3, **{GIVEN: program})
    assert "2 scripts, 2 cases: 1 passed, 0 failed, 1 could not be run" in done.stdout
    assert f"! b.pkt ipv4: {why}\n    a warning\n" in done.stdout
    assert done.stderr.splitlines()[0] == f"! b.pkt ipv4: {why}"


def test_no_packetdrill(scripts: Path) -> None:
    done = packetdrill(str(scripts), code=3, **{GIVEN: scripts / "none"})
    assert done.stdout == ""
    assert done.stderr.startswith("TESTCTL_PACKETDRILL: want the program packetdrill; got ")
