# SPDX-License-Identifier: Apache-2.0
"""Sysctls by name, and the congestion control, on a frozen /proc."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_agent.params import registry
from testctl_agent.params.entity import Entity
from testctl_agent.params.host import cc, kernel, sysctl
from testctl_agent.params.registry import find
from testctl_agent.params.sysctls import comes_with
from testctl_agent.spec.errors import ApplyError, Unavailable

FILES = {
    "ipv4/tcp_ecn": "2\n",
    "ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "ipv4/ip_local_port_range": "32768\t60999\n",
    "ipv4/conf/all/rp_filter": "0\n",
    "core/somaxconn": "4096\n",
    "ipv4/tcp_congestion_control": "cubic\n",
    "ipv4/tcp_available_congestion_control": "reno cubic dctcp\n",
}


@pytest.fixture
def host(tmp_path: Path) -> Entity:
    for name, text in FILES.items():
        path = tmp_path / "sys/net" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Entity("h1", "host", ("eth0",), proc=tmp_path)


@pytest.mark.parametrize(
    ("name", "before", "value"),
    [
        ("tcp_ecn", 2, 1),
        ("net.ipv4.tcp_ecn", 2, 1),
        ("tcp_rmem", "4096 131072 6291456", "4096 10000 20000"),
        ("net.ipv4.ip_local_port_range", "32768 60999", "1024 2048"),
        ("net.ipv4.conf.all.rp_filter", "0", "1"),
        ("net.core.somaxconn", "4096", "128"),
    ],
)
def test_reads_applies_and_reads_back(host: Entity, name: str, before: object, value: int | str) -> None:
    assert sysctl.unavailable(host, name) == ""
    assert sysctl.read(host, name) == before
    sysctl.apply(host, name, value)
    assert sysctl.read(host, name) == value


def test_whatever_the_kernel_says_can_be_restored(host: Entity) -> None:
    path = host.proc / "sys/net/ipv4/tcp_ecn"
    path.write_text("6\n")
    assert sysctl.read(host, "tcp_ecn") == "6"
    sysctl.apply(host, "tcp_ecn", "6")
    assert path.read_text() == "6\n"


def test_needs_says_what_is_not_there(host: Entity) -> None:
    assert sysctl.unavailable(host, "net.core.rmem_max") == (
        "there is no net.core.rmem_max in this kernel, or only in its first network namespace"
    )
    assert sysctl.unavailable(host, "net.ipv4.conf.all") != ""
    path = host.proc / "sys/net/core/somaxconn"
    path.chmod(0o444)
    assert sysctl.unavailable(host, "net.core.somaxconn") == "net.core.somaxconn can only be read"


@pytest.mark.parametrize(
    "name",
    [
        "net.ipv4.",
        "net.ipv4...x",
        "net.ipv4.a..b",
        "net.ipv4/../../x",
        "net.ipv6.x",
        "kernel.panic",
        "../x",
        "sysctl",
        "tcp_ecm",
    ],
)
def test_no_other_path_can_be_reached(host: Entity, name: str) -> None:
    with pytest.raises(ApplyError, match="want a sysctl below net"):
        sysctl.read(host, name)
    if name != "sysctl":
        assert find("host", name) is None


@pytest.mark.parametrize(
    ("name", "raw", "want"),
    [
        ("tcp_ecn", 7, "want one of 0, 1, 2, 3, 4, 5; got 7"),
        ("tcp_rmem", "1 2", "want 3 whole numbers with spaces between; got '1 2'"),
        ("net.ipv4.tcp_wmem", "a b c", "want 3 whole numbers"),
        ("net.core.somaxconn", "", "want a line of text; got ''"),
        ("net.core.somaxconn", "a\0b", "want a line of text"),
    ],
)
def test_a_bad_value_is_refused(name: str, raw: object, want: str) -> None:
    spec = find("host", name)
    assert spec is not None
    with pytest.raises(ValueError, match=want):
        spec.type.parse(raw)


def test_blanks_do_not_matter() -> None:
    spec = find("host", "tcp_rmem")
    assert spec is not None
    assert spec.type.parse(" 1\t2   3\n") == "1 2 3"


def test_cc(host: Entity) -> None:
    assert cc.read(host, "cc") == "cubic"
    cc.apply(host, "cc", "dctcp")
    assert cc.read(host, "cc") == "dctcp"
    with pytest.raises(ApplyError, match=r"host h1, cc: want vegas; this kernel has cubic, dctcp, reno"):
        cc.apply(host, "cc", "vegas")
    assert cc.unavailable(host, "cc") == ""


def test_kernel_can_only_be_confirmed() -> None:
    booted = Entity("h1", "host", notes={"kernel": "6.12"})
    kernel.apply(booted, "kernel", "6.12")
    with pytest.raises(ApplyError, match=r"host h1, kernel: want 6\.1; got 6\.12 \(running: "):
        kernel.apply(booted, "kernel", "6.1")
    running = str(kernel.read(Entity("h1", "host"), "kernel"))
    assert len(running.split(".")) == 2
    assert "-" not in running


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("net.ipv4.ip_forward", "accept_redirects"),
        ("net.ipv4.conf.all.forwarding", "accept_redirects"),
        ("net.ipv4.conf.eth0.forwarding", "LRO"),
        ("net.ipv4.neigh.eth0.unres_qlen", "set unres_qlen_bytes instead"),
        ("net.ipv4.neigh.default.retrans_time", "set retrans_time_ms instead"),
        ("net.ipv4.tcp_fastopen_key", "secret"),
        ("net.ipv4.tcp_congestion_control", "set cc instead"),
    ],
)
def test_what_a_restore_could_not_bring_back_takes_no_value(name: str, why: str) -> None:
    spec = registry.find("host", name)
    assert spec is not None
    with pytest.raises(ValueError, match=rf"^want no value: .*{why}.*; got '1'$"):
        spec.type.parse("1")


def test_a_sysctl_of_another_device_is_refused(host: Entity) -> None:
    for device in ("eth0", "mgmt", "all", "default"):
        path = host.proc / f"sys/net/ipv4/conf/{device}/rp_filter"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("0\n")
        reason = sysctl.unavailable(host, f"net.ipv4.conf.{device}.rp_filter")
        want = "net.ipv4.conf.mgmt.rp_filter is of device mgmt; want one of eth0" if device == "mgmt" else ""
        assert reason == want


def test_a_sysctl_that_can_t_be_read_is_refused(host: Entity) -> None:
    path = host.proc / "sys/net/ipv4/route/flush"
    path.parent.mkdir()
    path.write_text("")
    path.chmod(0o200)
    words = "net.ipv4.route.flush can only be written: nobody could bring back what it was"
    assert sysctl.unavailable(host, "net.ipv4.route.flush") == words


def test_a_value_that_only_newer_kernels_have_is_a_reason_to_skip(host: Entity) -> None:
    path = host.proc / "sys/net/ipv4/tcp_ecn"
    path.unlink()
    path.symlink_to("/proc/self/clear_refs")  # a file of the kernel that takes 1 to 5
    with pytest.raises(Unavailable, match="Invalid argument: this kernel has no such value"):
        sysctl.apply(host, "tcp_ecn", 0)


def test_which_values_came_with_which_sysctl() -> None:
    assert [comes_with("tcp_ecn", value) for value in (2, 3)] == ["", "net.ipv4.tcp_ecn_option"]
    assert comes_with("tcp_frto", 2) == ""
