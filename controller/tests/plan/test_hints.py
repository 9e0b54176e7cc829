# SPDX-License-Identifier: Apache-2.0
"""What is answered to units, names and tabs that a user knows from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from testctl.lab.built import kernel_for
from testctl.lab.inputs import Inputs
from testctl.lab.kernel import INPUTS, Kernel
from testctl.lab.kernel_ccs import unknown
from testctl.lab.kernel_lists import CCS, SYSCTLS
from testctl.lab.source import find as find_source
from testctl.plan import Plan, load_plan
from testctl.plan.hints import name_meant, value_meant
from testctl.testbeds.choose import find
from testctl_agent.params import registry
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.spec.types import Amount, Choice
from testctl_agent.spec.units import Bytes, Duration, Quantity, Rate

from controller.tests.support.refusal import refusal

Load = Callable[..., Plan]
MEANT = {
    Rate: {"10GBit": "10gbit", "10Gbits/s": "10gbit", "1.5 mbps": "1.5mbit", "10kbit/s": "10kbit", "7b/s": "7bit",
           "10GB": "", "10MBps": "", "10tbit": "", "fast": "", "10 parsecs": "", "10ms": ""},
    Bytes: {"5kb": "5kB", "5Kib": "5KiB", "5bytes": "5B", "5mbyte": "5MB", "5gbit": "", "5ms": "", "5 x": ""},
    Duration: {"5usec": "5us", "5μs": "5us", "5 msec": "5ms", "1.5sec": "1.5s", "5NS": "5ns", "5m": "5min",
               "5hours": "", "5kB": ""},
}  # fmt: skip


@pytest.mark.parametrize(
    ("of", "raw", "meant"), [(of, raw, meant) for of, those in MEANT.items() for raw, meant in those.items()]
)
def test_units(of: type[Quantity], raw: str, meant: str) -> None:
    with pytest.raises(ValueError, match="want a"):
        of.parse(raw)
    assert value_meant(Amount(of), raw) == (f"; did you mean {meant}?" if meant else "")
    if meant:
        of.parse(meant)


def test_no_unit_is_suggested_that_is_refused() -> None:
    assert value_meant(Amount(Rate, most=10), "10GBit") == ""
    assert value_meant(Choice((1, 2)), "10GBit") == ""
    assert value_meant(Amount(Rate), 10) == ""
    assert value_meant(Amount(Rate), "9" * 1000 + "GBit") == ""


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("tuples: [[switch, rate, 10GBit]]", "100mbit or 64kbit, or none; got '10GBit'; did you mean 10gbit?"),
        ("tuples: [[bulk, duration, 3sec]]", "200ms, 20us or 5ns; got '3sec'; did you mean 3s?"),
        (
            "tuples: [[hosts, cc, a]]\nexpect: [{metric: throughput_bps, min: 90 MBit}]",
            "got 90 MBit; did you mean 90mbit?",
        ),
        ("tuples: [[hosts, congestion, a]]", "no parameter named congestion; did you mean cc?"),
        ("tuples: [[hosts, net.ipv6.conf.all.forwarding, 1]]", "; of sysctls those below net.ipv4 and net.core can"),
        ("tuples: [[switch, bandwidth, 1gbit]]", "no parameter named bandwidth; did you mean rate?"),
        ("tuples: [[hosts, xyzzy, 1]]", "no parameter named xyzzy; testctl params host lists those there are"),
        ("tuples: [[hosts, tcp_xyzzy, 1]]", " (another sysctl by its whole name: net.ipv4.tcp_xyzzy)"),
        ("tuples:\n\t- [hosts, cc, a]", "<plan>:4:1: not YAML: got a tab; want spaces to indent"),
        ("tuples:\n  - [hosts, cc, a]\n\texpect: []", "not YAML: got a tab; want spaces to indent"),
    ],
)
def test_what_is_said(plan_of: Load, rest: str, said: str) -> None:
    assert said in refusal(plan_of, rest)


PLAN = b"topology: pair\nflows: {f: sender -> receiver}\ntuples:\n  - [hosts, %s, 1]\n"


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built kernel 6.12 whose sysctls are known."""
    kernel = Kernel("6.12", "0" * 16, tmp_path)
    (tmp_path / SYSCTLS).write_text("net.ipv4.tcp_ecn\nnet.ipv4.conf.default.rp_filter\n", encoding="ascii")
    (tmp_path / CCS).write_text("bbr\ncubic\nreno\n", encoding="ascii")
    monkeypatch.setattr("testctl.lab.built.built", lambda name, ccs=(): kernel if name == "6.12" else None)
    return tmp_path


def test_a_sysctl_that_the_kernel_has_not(known: Path) -> None:
    plan = load_plan(PLAN % b"net.ipv4.tcp_enc", metrics={}, registry=registry)
    assert refusal(find("lab").check, plan) == (
        "<plan>:4:31: net.ipv4.tcp_enc: kernel 6.12 has no such sysctl in a host, or only in its first network "
        "namespace; did you mean net.ipv4.tcp_ecn?"
    )


@pytest.mark.parametrize("name", [b"tcp_ecn", b"net.ipv4.tcp_ecn", b"net.ipv4.conf.eth0.rp_filter", b"initcwnd"])
def test_what_the_kernel_has(known: Path, name: bytes) -> None:
    find("lab").check(load_plan(PLAN % name, metrics={}))


def test_a_kernel_that_never_ran(known: Path) -> None:
    """Nothing is booted for a dry run."""
    for file in (SYSCTLS, CCS):
        (known / file).unlink()
    find("lab").check(load_plan(PLAN % b"net.ipv4.tcp_enc", metrics={}))
    find("lab").check(load_plan(OF_CCS % b"cubicc", metrics={}))
    assert not list(known.iterdir())


OF_CCS = b"""topology: pair
flows: {f: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, %s]]
  - [f, bytes, 1kB]
"""


def test_a_congestion_control_that_the_kernel_has_not(known: Path) -> None:
    assert refusal(find("lab").check, load_plan(OF_CCS % b"cubicc", metrics={})) == (
        "<plan>:4:25: cc: kernel 6.12 has no congestion control cubicc; did you mean cubic?; there are bbr, cubic, reno"
    )
    find("lab").check(load_plan(OF_CCS % b"bbr", metrics={}))
    with pytest.raises(PlanError, match=r"<plan>:5:13: cc: kernel 6\.12 has no congestion control vegas; there are"):
        find("lab").check(load_plan(OF_CCS.replace(b"bytes, 1kB", b"cc, vegas") % b"bbr", metrics={}))


def test_plan_and_run_name_the_build_that_a_congestion_control_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel of the present sources and compiler, but for a file of lab/cc that came later."""
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path))
    source = tmp_path / "sources" / "linux-source-9.9.tar.xz"
    source.parent.mkdir()
    source.write_bytes(b"a kernel")
    now = Inputs.of(find_source("9.9"))
    before = replace(now, files={name: code for name, code in now.files.items() if name != "lab/cc/tcp_areno.c"})
    directory = tmp_path / "kernels" / f"9.9-{before.key}"
    directory.mkdir(parents=True)
    (directory / "linux").touch()
    (directory / INPUTS).write_text(before.to_json())
    (directory / CCS).write_text("cubic\nreno\n")
    text = OF_CCS % b"areno" + b"  - [hosts, kernel, '9.9']\n"
    why = "kernel 9.9 is to be built again: lab/cc/tcp_areno.c is new; build it with: testctl lab build 9.9"
    assert refusal(find("lab").check, load_plan(text, metrics={})) == f"<plan>:4:25: cc: {why}"
    with pytest.raises(TestbedError) as stopped:
        kernel_for("9.9", {"cubic", "areno"})
    assert str(stopped.value) == why
    said = unknown({"areno", "cubicc"}, {"9.9": frozenset({"cubic", "reno"})})
    assert "no congestion control areno, which was built without " in said["areno"]
    assert "did you mean cubic?" in said["cubicc"]


def test_a_congestion_control_that_another_kernel_may_have(known: Path) -> None:
    """6.1 is not built: what it has is not known."""
    text = OF_CCS % b"mine" + b'  - [hosts, kernel, ["6.12", "6.1"]]\n'
    find("lab").check(load_plan(text, metrics={}))


def test_a_kernel_that_there_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path))
    (tmp_path / "kernels" / f"mine-{'0' * 16}").mkdir(parents=True)
    (tmp_path / "kernels" / f"mine-{'0' * 16}" / "linux").touch()
    text = b"topology: pair\nflows: {f: sender -> receiver}\ntuples:\n  - [hosts, kernel, [mine, 9.9]]\n"
    lines = refusal(find("lab").check, load_plan(text, metrics={})).splitlines()
    assert lines[-1].startswith("<plan>:4:28: kernel 9.9: no source at ")
    assert lines[-1].endswith("; built are: mine")


@pytest.mark.parametrize(
    ("of", "raw", "ends"),
    [
        (Duration, "1ms..100ms", "from: 1ms, to: 100ms"),
        (Duration, "1ms…100ms", "from: 1ms, to: 100ms"),
        (Rate, "10mbit - 1gbit", "from: 10mbit, to: 1gbit"),
        (Bytes, "10kB to 30kB", "from: 10kB, to: 30kB"),
    ],
)
def test_a_range_as_it_is_written(of: type[Quantity], raw: str, ends: str) -> None:
    assert value_meant(Amount(of), raw) == f"; did you mean {{{ends}, steps: 5, scale: log}}?"


@pytest.mark.parametrize("raw", ["100ms..1ms", "1ms..1ms", "0ms..1ms", "1ms..2kB", "1ms..", "..1ms", "1-" * 30])
def test_what_is_no_range(raw: str) -> None:
    assert "from" not in value_meant(Amount(Duration), raw)


@pytest.mark.parametrize(("raw", "meant"), [("2 BDP", "2 bdp"), ("0.5 bpd", "0.5 bdp"), ("2 Rtt", "2 rtt")])
def test_a_quantity_of_the_path(raw: str, meant: str) -> None:
    assert value_meant(Amount(Bytes), raw) == f"; did you mean {meant}?"


def test_what_another_parameter_sets() -> None:
    assert name_meant("loss", ["rate"]).startswith('; a switch loses packets: [switch, fate, "lose 1e-2')
    assert name_meant("udp", ["bytes"]) == name_meant("quic", []) != ""
