# SPDX-License-Identifier: Apache-2.0
"""Attestation: from frozen files, from the running kernel, and the same before and after."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl_agent.engine import attest_link, attest_nic
from testctl_agent.engine.attest import attest
from testctl_agent.network import qdisc

DATA = Path(__file__).parent / "data"


def test_frozen_files() -> None:
    assert attest((), DATA / "proc", DATA / "sys") == {
        "congestion controls": "bbr cubic reno",
        "kernel": platform.release(),
        "sysctl net.core.default_qdisc": "pfifo_fast",
        "sysctl net.core.rmem_max": "212992",
        "sysctl net.ipv4.icmp_echo_ignore_all": "0",
        "sysctl net.ipv4.ip_forward": "1",
        "sysctl net.ipv4.tcp_congestion_control": "cubic",
        "sysctl net.ipv4.tcp_rmem": "4096 131072 6291456",
        "sysctl net.ipv4.tcp_sack": "1",
    }


def test_the_loopback() -> None:
    facts = attest(["lo"], DATA / "proc", DATA / "sys")
    assert facts["link lo gro_flush_timeout"] == "0"
    assert facts["link lo address"] == "00:00:00:00:00:00"
    assert "127.0.0.1/8" in facts["link lo ipv4"].split()
    assert facts["link lo mtu"] == Path("/sys/class/net/lo/mtu").read_text().strip()
    assert facts["link lo txqueuelen"] == Path("/sys/class/net/lo/tx_queue_len").read_text().strip()
    assert facts["link lo flags"] == "up"
    assert facts["link lo qdiscs"].startswith("noqueue 0: root ")
    assert "loopback" in facts["link lo offloads"].split()
    assert facts["link lo routes"].startswith("127.0.0.0/8,255,")


def test_a_device_that_is_not_there_is_said_and_stops_nothing() -> None:
    facts = attest(["gone"], DATA / "proc", DATA / "sys")
    assert facts["link gone mtu"] == "can't be read: device gone: not in this network namespace"
    assert facts["sysctl net.ipv4.tcp_sack"] == "1"


def test_a_key_is_no_fact() -> None:
    assert not any("fastopen_key" in name for name in attest(()))


def test_it_stands_still() -> None:
    assert attest(["lo"]) == attest(["lo"])


def test_what_htb_counts_is_left_out() -> None:
    def htb(direct_packets: int) -> qdisc.Entry:
        options = bytearray(qdisc.htb_options())
        options[4 + 16 : 4 + 20] = direct_packets.to_bytes(4, "little")
        return qdisc.Entry(1, 0x10000, qdisc.ROOT, 0, "htb", bytes(options), {}, {})

    shown = {attest_link._shown(htb(packets)) for packets in (0, 7)}
    assert len(shown) == 1
    assert shown.pop().startswith("htb 1: root ")


@pytest.mark.root
def test_every_change_shows_and_a_restore_hides_it(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_attest.py")).endswith("all is as before\n")


@pytest.mark.long
@pytest.mark.root
def test_what_a_parameter_changes_is_gone_after_a_restore(in_namespace: Callable[..., str]) -> None:
    """For every parameter of a host and every sysctl, by what ip, tc, ethtool and /proc/sys/net show."""
    said = in_namespace(Path(__file__).with_name("root_restored.py"), timeout_s=600.0)
    assert said.endswith("all is as before\n"), said


def test_of_other_devices_no_sysctl_is_a_fact() -> None:
    facts = attest(["lo"])
    devices = {
        name.split(".")[3] for name in facts if name.startswith(("sysctl net.ipv4.conf.", "sysctl net.ipv6.conf."))
    }
    assert devices <= {"all", "default", "lo"}
    assert "sysctl net.ipv4.conf.lo.rp_filter" in facts


def test_what_a_nic_changes_by_itself_is_no_fact() -> None:
    found = {"rx_usecs": 20, "rx_frames": 8, "tx_usecs": 30, "adaptive_rx": 1, "adaptive_tx": 0}
    assert attest_nic.shown(found) == "adaptive_rx:1 adaptive_tx:0 tx_usecs:30"
    assert attest_nic.shown({}) == "none"
