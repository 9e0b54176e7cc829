# SPDX-License-Identifier: Apache-2.0
"""The lab's trace as a file: what is saved, and what is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from testctl_agent.spec.errors import TestbedError
from testctl_agent.tcp_trace import bpf
from testctl_agent.tcp_trace.lab import EVENT_BYTES, LAYOUT, Counts, LabTrace

EVENTS = bytes(range(EVENT_BYTES)) * 3


def trace(where: Path, head: bytes = b"", events: bytes = EVENTS) -> LabTrace:
    path = where / "trace"
    path.write_bytes((head or struct.pack("<4s3I2Q", b"TGE1", LAYOUT, EVENT_BYTES, 0, 3, 7)) + events)
    return LabTrace(path)


def test_what_is_saved(tmp_path: Path) -> None:
    assert trace(tmp_path).save(tmp_path / "out") == Counts(events=3, lost=7)
    assert (tmp_path / "out").read_bytes() == EVENTS


def test_it_is_switched(tmp_path: Path) -> None:
    switched = LabTrace(tmp_path / "switch")
    switched.on(True)
    assert (tmp_path / "switch").read_text() == "1"
    switched.on(False)
    assert (tmp_path / "switch").read_text() == "0"
    with pytest.raises(TestbedError, match=r"^tcp_events: .*/none/at/all can't be switched: No such file"):
        LabTrace(tmp_path / "none" / "at" / "all").on(True)


def test_another_layout(tmp_path: Path) -> None:
    head = struct.pack("<4s3I2Q", b"TGE1", LAYOUT + 1, 64, 0, 3, 0)
    with pytest.raises(
        TestbedError, match=rf"want events of layout {LAYOUT}, {EVENT_BYTES} bytes; got layout {LAYOUT + 1}, 64"
    ):
        trace(tmp_path, head).save(tmp_path / "out")


def test_not_a_trace(tmp_path: Path) -> None:
    for head in (b"no such thing" + bytes(30), b"TGE1"):
        with pytest.raises(TestbedError, match="want a file that begins b'TGE1'"):
            trace(tmp_path, head, b"").save(tmp_path / "out")


def test_it_ends_early(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"want 3 events; got 100 bytes"):
        trace(tmp_path, events=EVENTS[:100]).save(tmp_path / "out")


def test_a_kernel_without_btf(tmp_path: Path) -> None:
    assert "has neither the lab's trace of TCP nor BTF" in bpf.unavailable(tmp_path)


def test_a_kernel_without_a_tracepoint(tmp_path: Path) -> None:
    btf = tmp_path / "sys/kernel/btf/vmlinux"
    btf.parent.mkdir(parents=True)
    btf.write_bytes(b"\0btf_trace_tcp_probe\0btf_trace_net_dev_queue\0btf_trace_tcp_destroy_sock\0")
    assert bpf.unavailable(tmp_path).endswith(
        "has no tracepoint tcp_cong_state_set: want Linux 5.18 or later with CONFIG_BPF_EVENTS"
    )
