# SPDX-License-Identifier: Apache-2.0
"""packetdrill's scripts: which are meant, in which variants, with which words; the program, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.lab import packetdrill
from testctl.lab.packetdrill import Case, cases_of, grouped, scripts_of, variants
from testctl.testbeds.packetdrill import judged
from testctl_agent.spec.errors import PlanError, TestbedError

RUNNER = """#!/bin/bash
declare -A ip_args=(
\t[ipv4]="--ip_version=ipv4
\t\t--local_ip=192.168.0.1
\t\t-D COOKIE='a b'"
\t[ipv6]="--ip_version=ipv6
\t\t--mtu=1520"
)
declare -a others=(
\t[none]="--no"
)
"""
WORDS = {"ipv4": ("--ip_version=ipv4", "--local_ip=192.168.0.1", "-D", "COOKIE=a b"),
         "ipv6": ("--ip_version=ipv6", "--mtu=1520")}  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A kernel's directory of scripts: one for both versions, one for IPv6 only."""
    home = tmp_path / "tree"
    home.mkdir()
    (home / packetdrill.RUNNER).write_text(RUNNER)
    (home / "tcp_a.pkt").write_text("`./defaults.sh`\n0 socket(...) = 3\n")
    (home / "tcp_b.pkt").write_text("--ip_version=ipv6\n`./defaults.sh`\n")
    (home / "defaults.sh").touch()
    return home


def test_the_variants_are_those_of_the_trees_runner(tree: Path) -> None:
    assert variants(RUNNER, tree) == WORDS
    cases = cases_of(scripts_of([], tree), tree)
    assert [(case.name, case.options) for case in cases] == [
        ("tcp_a.pkt ipv4", WORDS["ipv4"]),
        ("tcp_a.pkt ipv6", WORDS["ipv6"]),
        ("tcp_b.pkt ipv6", WORDS["ipv6"]),
    ]
    assert cases[2].argv == (*WORDS["ipv6"], "tcp_b.pkt")


def test_the_variants_of_an_older_runner(tree: Path) -> None:
    text = "readonly ipv4_args=('--ip_version=ipv4 '\n\t'--local_ip=192.168.0.1 '\n\t'-D A=B ')\n"
    text += "readonly ipv6_args=('--x ')\n"
    assert variants(text, tree) == {
        "ipv4": ("--ip_version=ipv4", "--local_ip=192.168.0.1", "-D", "A=B"),
        "ipv6": ("--x",),
    }


def test_a_runner_without_variants(tree: Path) -> None:
    (tree / packetdrill.RUNNER).write_text("#!/bin/bash\n")
    with pytest.raises(TestbedError, match=r"ksft_runner\.sh: want the words of each variant, in an array ip_args"):
        cases_of(scripts_of([], tree), tree)


def test_scripts_elsewhere_get_the_trees_variants_or_plain_ones(tree: Path, tmp_path: Path) -> None:
    own = tmp_path / "own" / "mine.pkt"
    own.parent.mkdir()
    own.write_text("0 socket(...) = 3\n")
    assert [case.options for case in cases_of(scripts_of([str(own)], tree), tree)] == list(WORDS.values())
    plain = cases_of(scripts_of([str(own.parent)], None), None)
    assert [case.options[0] for case in plain] == [
        "--ip_version=ipv4", "--ip_version=ipv6", "--ip_version=ipv4-mapped-ipv6"
    ]  # fmt: skip
    assert "--mtu=1520" in plain[1].options, "an MSS of 1460, as of IPv4"
    assert plain[1].options[-4:] == ("-D", "CMSG_LEVEL_IP=SOL_IPV6", "-D", "CMSG_TYPE_RECVERR=IPV6_RECVERR")
    assert all(any(word.startswith("--remote_ip=") for word in case.options) for case in plain)


def test_what_a_case_has_of_tmp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Case(Path("/tmp/a/b/c.pkt"), "ipv4", ()).kept == "/tmp/a"
    assert Case(Path("/var/tmp/c.pkt"), "ipv4", ()).kept == ""
    monkeypatch.setattr(packetdrill, "TMP", tmp_path)
    (tmp_path / "c.pkt").write_text("")
    with pytest.raises(PlanError, match=r"c\.pkt: want a script in a directory of its own; got one in "):
        cases_of(scripts_of([str(tmp_path / "c.pkt")], None), None)


def test_a_version_that_there_is_not(tree: Path) -> None:
    (tree / "tcp_b.pkt").write_text("--ip_version=ipv9\n")
    with pytest.raises(PlanError, match=r"tcp_b\.pkt: want --ip_version=ipv4 or ipv6; got ipv9"):
        cases_of(scripts_of([], tree), tree)


def test_words_that_mean_scripts(tree: Path, tmp_path: Path) -> None:
    a, b = tree / "tcp_a.pkt", tree / "tcp_b.pkt"
    assert scripts_of(["tcp_*.pkt"], tree) == [a, b]
    assert scripts_of([str(b), "tcp_a.pkt", str(tree)], tree) == [b, a], "each once"
    with pytest.raises(PlanError, match=r"'tcp_c\*': want a script or a directory; .* no script of that name in "):
        scripts_of(["tcp_c*"], tree)
    with pytest.raises(PlanError, match="''"):
        scripts_of([""], tree)
    with pytest.raises(PlanError, match="want a script"):
        scripts_of(["defaults.sh"], tree)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(PlanError, match=r"want a directory with scripts, \*\.pkt; it has none"):
        scripts_of([str(empty)], tree)
    with pytest.raises(PlanError, match="want the PATH of scripts: this kernel's source has no tools/testing/"):
        scripts_of([], None)


def test_groups_keep_scripts_together_in_order() -> None:
    cases = [Case(Path(f"/s/{number}.pkt"), variant, ()) for number in range(5) for variant in ("ipv4", "ipv6")]
    groups = grouped(cases, 2)
    assert [len(group) for group in groups] == [4, 4, 2]
    assert [case for group in groups for case in group] == cases
    assert grouped([], 2) == []


def test_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "packetdrill"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(packetdrill.GIVEN, raising=False)
    with pytest.raises(TestbedError, match=r"packetdrill is not on PATH.* set TESTCTL_PACKETDRILL to the program"):
        packetdrill.program()
    monkeypatch.setenv(packetdrill.GIVEN, str(program))
    with pytest.raises(TestbedError, match=r"TESTCTL_PACKETDRILL: want the program packetdrill; got '.*', which can't"):
        packetdrill.program()
    program.chmod(0o755)
    assert packetdrill.program() == program
    monkeypatch.delenv(packetdrill.GIVEN)
    assert packetdrill.program() == program
    assert packetdrill.fingerprint(program).startswith(f"{program} (sha256 ")
    with pytest.raises(TestbedError, match=r"packetdrill starts ip, which is not in .* \(Debian's package iproute2\)"):
        packetdrill.check_needs(str(tmp_path))


def test_verdicts() -> None:
    case = Case(Path("/s/a.pkt"), "ipv4", ())
    assert judged(case, 0, "what it prints\n", [], 1.5).verdict == "pass"
    failed = judged(case, 1, "a.pkt:3: error\n  script packet: x\n", [], 1.5)
    assert (failed.verdict, failed.text) == ("fail", "a.pkt:3: error\n  script packet: x")
    assert judged(case, -11, "", [], 0).text == "exit -11"
    other = judged(case, 1, "sysctl: cannot stat /proc/sys/x\na.pkt:3: error\n  actual packet: x\n", [], 1.5)
    assert (other.verdict, other.text) == (
        "fail",
        "a.pkt:3: error\n  actual packet: x\nsysctl: cannot stat /proc/sys/x",
    )
    why = "assertion len >= sizeof(struct _tcp_info) failed at code.c line 148"
    unfit = judged(case, 1, f"sysctl: cannot stat /proc/sys/x\n{why}\n", [], 1.5)
    assert (unfit.verdict, unfit.text) == ("broken", f"{why}\nsysctl: cannot stat /proc/sys/x")
    assert judged(case, 1, f"{why}\n", ["WARNING: at net/ipv4"], 1.5).verdict == "fail", "the kernel's own fault"
    why = "a.pkt: error executing init command: non-zero status 127"
    before = judged(case, 1, f"sh: 1: ./x.sh: not found\n{why}\n", [], 1.5)
    assert (before.verdict, before.text.splitlines()[0]) == ("broken", why)
    faulty = judged(case, 0, "", ["WARNING: at net/ipv4"], 0)
    assert (faulty.verdict, faulty.text) == ("fail", "kernel: WARNING: at net/ipv4")
    never = judged(case, 1000, "", [], 3600)
    assert (never.verdict, never.text) == ("broken", "did not end within 3600 s of virtual time")
