# SPDX-License-Identifier: Apache-2.0
"""The lab's kernel records what tcpdump and inet_diag do, and moves nothing by it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from testctl.lab.built import built, names
from testctl.records import Records, digest_of
from testctl.records.schema import codes_of, names_column

from conftest import KERNELS
from tests import plan_runs

pytestmark = pytest.mark.lab

CAPTURES = ("cut", "short", "whole", "loopback")
SAMPLE = np.dtype([("time_ns", "<u8"), ("local", "<u2"), ("remote", "<u2"), ("state", "<u4"), ("cookie", "<u4"),
                   ("length", "<u4"), ("info", "u1", (320,))])  # fmt: skip


@pytest.fixture
def beside(in_lab: Callable[..., str], tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """The files of the recorders and of the programs, and what they printed."""
    script = Path(__file__).with_name("lab_recorders.py").read_text(encoding="utf-8")
    where = tmp_path / "recorded"
    where.mkdir()
    return where, json.loads(in_lab(script, TESTCTL_OUT=str(where)))


def test_the_kernels_recorders_against_tcpdump_and_inet_diag(beside: tuple[Path, dict[str, Any]]) -> None:
    where, said = beside
    for name in CAPTURES:
        ours, theirs = ((where / f"{name}-{which}" / "capture.pcap").read_bytes() for which in ("kernel", "program"))
        assert ours == theirs, name
        assert said["results"][f"{name}-kernel"] == said["results"][f"{name}-program"]
        assert said["results"][f"{name}-kernel"]["captured"] > 20, name
    assert said["results"]["loopback-kernel"]["received"] == 2 * said["results"]["loopback-kernel"]["captured"]
    lengths = {len((where / f"{name}-kernel" / "capture.pcap").read_bytes()) for name in CAPTURES}
    assert len(lengths) == len(CAPTURES)
    for number, (name, count) in enumerate({"all": 4, "some": 3, "inet6": 1}.items()):
        ours, theirs = (samples(where / f"{name}-{which}" / "tcp_info.bin") for which in ("kernel", "program"))
        assert len(ours) == len(theirs) == 5 * count, name
        instants = said["start_ns"] + 100_000 * number + 7_000_000 * np.arange(5)
        assert (ours["time_ns"] == np.repeat(instants, count)).all()
        assert (theirs["time_ns"] > ours["time_ns"]).all()  # a program that reads the clock moves it
        for field in ("local", "remote", "state", "cookie", "length"):
            assert (ours[field] == theirs[field]).all(), (name, field)
        assert (ours["info"] == theirs["info"]).all(), name
        assert said["results"][f"{name}-kernel"] == said["results"][f"{name}-program"] == {"bytes": 8 + 344 * len(ours)}
    errors = said["errors"]
    assert errors == {
        "no device": f"capture: nonesuch 128 tcp > {where}/capture.pcap: No such device",
        "no directory": f"capture: lo 128 tcp > {where}/nonesuch/capture.pcap: No such file or directory",
        "full": "capture: /dev/full can't be written: No space left on device",
        "twice": "Device or resource busy",
        "not ended": f"who:  > {where}/file: Invalid argument",
        "words": f"who: lo 100 > {where}/file: Invalid argument",
        "which": f"who: lo 100 some > {where}/file: Invalid argument",
        "bytes": f"who: lo 262145 all > {where}/file: Numerical result out of range",
        "interval": f"who: 0 0 999 inet - > {where}/file: Numerical result out of range",
        "ports": f"who: 0 0 1000000 inet 7-5 > {where}/file: Invalid argument",
        "family": f"who: 0 0 1000000 unix - > {where}/file: Invalid argument",
    }


def samples(path: Path) -> Any:
    data = path.read_bytes()
    assert data[:8] == b"TGI1" + (320).to_bytes(4, "little")
    return np.frombuffer(data, SAMPLE, offset=8)


PLAN = """
about: two flows that lose and mark packets, with any of the instruments
topology: {star: {hosts: 3}}
flows: {one: h1 -> h3, two: h2 -> h3}
tuples:
  - [hosts, kernel, "KERNEL"]
  - [h1, cc, cubic]
  - [h2, cc, bbr]
  - [hosts, tcp_info, INTERVAL]
  - [hosts, capture, CAPTURE]
  - [switch, telemetry, TELEMETRY]
  - [switch, backend, ebpf]
  - [switch:h3, rate, 100mbit]
  - [switch:h3, buffer, 60kB]
  - [switch, delay, 3ms]
  - [one, duration, 400ms]
  - [two, duration, 400ms]
  - [two, start, 20ms]
"""


def of_kernels() -> list[str]:
    """All of Debian's that are built."""
    return [name for name in names() if re.fullmatch("[0-9.]+", name) and built(name)] or ["6.12"]


def recorded(where: Path, kernel: str, interval: str, capture: str, telemetry: str) -> tuple[Records, bytes]:
    """The records of a point, and the switch's raw telemetry."""
    text = PLAN.replace("KERNEL", kernel).replace("INTERVAL", interval)
    records = plan_runs.recorded(where, text.replace("CAPTURE", capture).replace("TELEMETRY", telemetry))
    told = where / "switch" / "telemetry" / "telemetry.bin"
    return records, told.read_bytes() if told.exists() else b""


def of_hosts(packets: pa.Table) -> pa.Table:
    """The rows of captures, as a point without telemetry has them."""
    codes, places = codes_of(packets, "where")
    hosts = [place for place in places if place != "switch"]
    column = packets.schema.get_field_index("where")
    found = packets.set_column(column, "where", names_column(np.minimum(codes, len(hosts) - 1), hosts))
    return found.filter(pa.array(codes != places.index("switch")))


@pytest.mark.parametrize(
    "kernel", [pytest.param(name, marks=() if name in KERNELS else pytest.mark.long) for name in of_kernels()]
)
def test_no_instrument_moves_a_packet(tmp_path: Path, kernel: str) -> None:
    """The telemetry is the same with and without captures and samples, and they are, with and without telemetry."""
    all_on, told = recorded(tmp_path / "all", kernel, "1ms", "on", "on")
    _, alone = recorded(tmp_path / "telemetry", kernel, "off", "off", "on")
    assert len(told) > 10**5
    assert told == alone
    without, none = recorded(tmp_path / "hosts", kernel, "1ms", "on", "off")
    assert not none
    assert without.packets.num_rows > 10**4
    assert without.tcp_info.num_rows > 500
    assert digest_of(of_hosts(all_on.packets), all_on.tcp_info) == digest_of(without.packets, without.tcp_info)
    captured, _ = recorded(tmp_path / "captures", kernel, "off", "on", "off")
    assert digest_of(captured.packets, captured.tcp_info) == digest_of(without.packets, captured.tcp_info)
    late_ns = without.tcp_info["time_ns"].to_numpy() % 10**6
    assert late_ns.max() <= 4 + 256  # a process's reading of the clock takes 256 ns, and is not parted
    assert np.isin(late_ns, (2, 3, 4)).mean() > 0.9  # behind the two connections, and one after the other
