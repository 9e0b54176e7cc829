# SPDX-License-Identifier: Apache-2.0
"""The kernel's counters, read from frozen files and from the kernel."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from testctl_agent.collect import counters
from testctl_agent.spec.errors import TestbedError

DATA = Path(__file__).parent / "data"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the frozen files that a test may spoil."""
    shutil.copytree(DATA, tmp_path / "root")
    return tmp_path / "root"


def test_snmp() -> None:
    found = counters.snmp(DATA)
    assert found["Ip.DefaultTTL"] == 64
    assert found["Tcp.MaxConn"] == -1
    assert {"Tcp.RetransSegs", "TcpExt.TCPTimeouts", "TcpExt.TCPLossProbes", "IpExt.InCEPkts"} <= found.keys()
    assert (found["Ip6.InReceives"], found["Ip6.InNoECTPkts"]) == (82, 82)
    assert (found["Icmp6.InMsgs"], found["Icmp6.OutMsgs"]) == (2, 995)
    assert not [name for name in found if name.startswith("UdpLite6")]


def test_snmp_of_a_kernel_without_ipv6(root: Path) -> None:
    (root / "proc/net/snmp6").unlink()
    assert counters.snmp(root) == {name: n for name, n in counters.snmp(DATA).items() if "6." not in name}


def test_devices() -> None:
    found = counters.devices(DATA)
    assert set(found) == {"lo", "eth0"}
    assert (found["eth0"]["rx_bytes"], found["eth0"]["tx_packets"], found["eth0"]["collisions"]) == (
        739861138,
        10888,
        10,
    )


def test_statistics() -> None:
    assert set(counters.statistics("lo", DATA)) == {"rx_bytes", "tx_bytes", "rx_nohandler", "rx_missed_errors"}


def test_snapshot_of_frozen_files() -> None:
    found = counters.snapshot(("lo",), DATA)
    assert set(found["device"]) == {"lo"}
    assert found["device"]["lo"]["rx_bytes"] == 13052879529
    assert "rx_nohandler" in found["device"]["lo"]
    assert found["errors"] == []
    assert json.dumps(found)


@pytest.mark.parametrize(
    ("file", "text", "error"),
    [
        ("snmp", "Tcp: A B\nTcp: 1\n", "snmp: zip() argument 2 is shorter than argument 1"),
        ("snmp", "Tcp: A\nUdp: 1\n", "snmp: snmp: want the values of Tcp; got 'Udp: 1'"),
        ("snmp6", "Ip6InReceives\n", "snmp: snmp6: want a name and a value; got 'Ip6InReceives'"),
        ("dev", "\n\neth0: 1 2\n", "device: zip() argument 2 is shorter than argument 1"),
    ],
)
def test_one_failing_reader_stops_no_other(root: Path, file: str, text: str, error: str) -> None:
    (root / "proc/net" / file).write_text(text)
    found = counters.snapshot(("lo",), root)
    assert found["errors"][0] == error
    assert found["snmp" if file == "dev" else "device"]


def test_sysfs_of_another_namespace(root: Path) -> None:
    (root / "sys/class/net/lo/statistics/rx_bytes").write_text("5\n")
    found = counters.snapshot(("lo",), root)
    assert found["errors"][0].endswith("want rx_bytes of 13052879529; got 5: is /sys of this namespace?")
    assert found["device"]["lo"]["rx_packets"] == 311376


def test_a_file_that_is_not_there(root: Path) -> None:
    (root / "proc/net/netstat").unlink()
    (error,) = counters.snapshot(("lo",), root)["errors"]
    assert error.startswith("snmp: [Errno 2] No such file or directory: ")


def test_a_device_that_is_not_there() -> None:
    found = counters.snapshot(("eth9",), DATA)
    assert found["errors"][0] == "device: no device eth9; there are: eth0, lo"
    assert found["snmp"]


def test_before_and_after(tmp_path: Path) -> None:
    task = counters.task({"devices": "lo"}, tmp_path)
    assert task.files() == []
    task.start()
    assert task.files() == ["counters_before.json"]
    assert not task.wait(0)
    with pytest.raises(TestbedError, match="has not ended"):
        task.result()
    task.stop()
    assert task.poll()
    assert task.files() == ["counters_before.json", "counters_after.json"]
    assert task.result() == {"errors": []}
    before, after = (json.loads((tmp_path / name).read_text()) for name in task.files())
    assert before["snmp"].keys() == after["snmp"].keys()
    assert [row["device"] for row in after["qdisc"]] == ["lo"]
