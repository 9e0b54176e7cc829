# SPDX-License-Identifier: Apache-2.0
"""The reader of what a kernel traced: its layout is the C struct's, and what it refuses or notes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.metrics.recovery import flow_recoveries
from testctl.records import Records, RecordsError, load_raw
from testctl.records.schema import CC_COLUMNS, SENDER_COLUMNS, TCP_EVENT_NAMES, TCP_EVENTS, TCP_LIMITS, Array
from testctl.records.tcp_events import LAYOUTS
from testctl_agent.tcp_trace import bpf
from testctl_agent.tcp_trace.lab import EVENT_BYTES, LAYOUT

from controller.tests.support.synthetic import Conversation, write_point
from controller.tests.support.synthetic_recovery import MSS, Sender

CLIENT, SERVER = 40000, 5001


def test_the_names_of_events_are_those_that_a_kernel_records() -> None:
    header = bpf.SOURCE.with_name("tcp_event.h").read_text(encoding="utf-8")
    for enum, prefix, names in (("kind", "TCP_EVENT_", TCP_EVENT_NAMES), ("limit", "TCP_LIMIT_", TCP_LIMITS)):
        (body,) = re.findall(rf"enum tcp_event_{enum} {{([^}}]*)}}", header)
        assert tuple(name.lower() for name in re.findall(rf"{prefix}(\w+)", body)) == names


def test_the_layout_is_the_structs(tmp_path: Path) -> None:
    """offsetof and sizeof of tcp_event.h, compiled, beside the reader's."""
    names = LAYOUTS[LAYOUT].names or ()
    shown = "".join(f'printf("%zu %zu\\n", offsetof(struct tcp_event, {n}), sizeof(e.{n}));' for n in names)
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n#include <linux/types.h>\n"
        "struct sock { unsigned long sk_pacing_rate; __u32 sk_pacing_status; };\n"
        "struct tcp_sock { __u64 bytes_acked, tcp_wstamp_ns, tcp_clock_cache; __u32 snd_una, snd_nxt, snd_cwnd,"
        " snd_ssthresh, packets_out, sacked_out, lost_out, retrans_out, delivered, srtt_us, rate_delivered,"
        " rate_interval_us, mss_cache, write_seq, snd_wnd, data_segs_out; };\n"
        "#define tcp_event_get(pointer, field) ((pointer)->field)\n#define tcp_event_state(tp) 0\n"
        "#define tcp_event_full(sk) 0\n#define tcp_event_cc(sk, words) 0\n"
        f'#include "{bpf.SOURCE.with_name("tcp_event.h")}"\n'
        f'int main(void) {{ struct tcp_event e; {shown} printf("%d %zu\\n", TCP_EVENT_LAYOUT, sizeof(e)); }}\n'
    )
    subprocess.run(["gcc", "-o", tmp_path / "layout", source], check=True)
    printed = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout.split()
    fields = LAYOUTS[LAYOUT].fields or {}
    ours = [f"{number}" for name in names for number in (fields[name][1], fields[name][0].itemsize)]
    assert printed == [*ours, str(LAYOUT), str(EVENT_BYTES)]
    assert LAYOUTS[LAYOUT].itemsize == EVENT_BYTES


def events(*rows: dict[str, Any]) -> Array:
    made = np.zeros(len(rows), LAYOUTS[LAYOUT])
    made["local_port"], made["remote_port"] = CLIENT, SERVER
    for number, row in enumerate(rows):
        for name, value in row.items():
            made[name][number] = value
    return made


KINDS = {name: kind for kind, name in enumerate(TCP_EVENT_NAMES)}
SENT = {"kind": KINDS["send"], "time_ns": 5_000, "acked_bytes": 1, "flight_bytes": MSS, "cwnd": 10, "pipe": 1}
ACKED = {"kind": KINDS["ack"], "time_ns": 9_000, "acked_bytes": 1 + MSS, "cwnd": 11, "prior_pipe": 1}


def point(where: Path, raw: bytes, talk: Conversation | None = None, **reported: Any) -> Path:
    """A point whose sender was traced."""
    talk = talk or Sender("prr", 20, 60, [0]).run().talk
    write_point(where, talk.captures())
    document = where / "raw" / "outcome.json"
    outcome = json.loads(document.read_text())
    at = {"layout": LAYOUT, "records": len(raw) // EVENT_BYTES, "lost": 0}
    at["clock_offset_ns"] = outcome["t0_ns"]
    outcome.setdefault("collected", {}).setdefault("sender", {})["tcp_events"] = at | reported
    document.write_text(json.dumps(outcome))
    file = where / "raw" / "sender" / "tcp_events" / "tcp_events.bin"
    file.parent.mkdir(parents=True)
    file.write_bytes(raw)
    return where


def test_rows(tmp_path: Path) -> None:
    other = events(SENT)
    other["remote_port"] = 22
    accepted = events(SENT)
    accepted["local_port"], accepted["remote_port"] = SERVER, CLIENT
    raw = events(SENT, ACKED | {"srtt_us": 700, "state": 3}).tobytes() + other.tobytes() + accepted.tobytes()
    records = load_raw(point(tmp_path, raw))
    assert records.tcp_events is not None
    assert records.tcp_events.schema == TCP_EVENTS
    rows = records.tcp_events.to_pylist()
    assert [(r["time_ns"], r["event"], r["snd_una"], r["snd_nxt"], r["srtt_us"], r["state"]) for r in rows] == [
        (5_000, "send", 0, MSS, -1, 0),
        (5_000, "send", 1, MSS + 1, -1, 0),  # who accepted: no SYN among its bytes
        (9_000, "ack", MSS, MSS, 700, 3),
    ]
    assert {(r["where"], r["flow"], r["conn"], r["source"]) for r in rows} == {("sender", "bulk", 0, "kernel")}
    assert not records.notes


def state_of(tmp_path: Path, **values: Any) -> dict[str, Any]:
    """The kernel's own columns of an event with these values, without those that are not known."""
    records = load_raw(point(tmp_path, events(SENT | values).tobytes()))
    assert records.tcp_events is not None
    (row,) = records.tcp_events.select(list(SENDER_COLUMNS)).to_pylist()
    return {name: value for name, value in row.items() if value != -1}


RATES = {"pacing_rate": 2_500_000, "delivery_rate": 1_250_000, "limit": 5}
BITS = {"pacing_rate_bps": 20_000_000, "delivery_rate_bps": 10_000_000, "limited_by": 5}


@pytest.mark.parametrize(
    ("values", "want"),
    [
        (RATES, BITS),
        ({"pacing_rate": 2**64 - 1}, {"limited_by": 0}),
        ({"pacing_rate": 2**63}, {"pacing_rate_bps": (2**63 - 1) // 8 * 8, "limited_by": 0}),
    ],
)
def test_rates_and_limits(tmp_path: Path, values: dict[str, Any], want: dict[str, Any]) -> None:
    assert state_of(tmp_path, **values) == want


GAINS = [(739, 739), (88, 739), (320, 512), (192, 512), (256, 512), (256, 256)]
"""Of Linux's BBR, with a unit of 256: Startup, Drain, three of ProbeBW, ProbeRTT."""


@pytest.mark.parametrize(
    ("kind", "words", "want"),
    [
        *(
            (16, (1_250_000, 0, 40_000, pacing, window), {"phase": phase, "pacing_gain": pacing / 256,
             "cwnd_gain": window / 256, "cc_bw_bps": 10_000_000, "cc_min_rtt_us": 40_000})
            for (pacing, window), phase in zip(GAINS, (0, 1, 2, 2, 2, 3), strict=True)
        ),
        (16, (0, 1, 2**32 - 1, 739, 739), {"phase": 0, "pacing_gain": 739 / 256, "cwnd_gain": 739 / 256,
                                           "cc_bw_bps": 8 * 2**32}),
        (16, (0, 0, 2**32 - 1, 0, 0), {}),  # before its first ACK
        (9, (1 | 1 << 16, 1024, 7, 9, 0), {"dctcp_alpha": 1.0, "dctcp_ce": 1}),
        (9, (1, 64, 7, 9, 0), {"dctcp_alpha": 0.0625, "dctcp_ce": 0}),
        (9, (0, 0, 0, 0, 0), {}),  # without ECN it is Reno
        (3, (1, 9, 41_000, 40_000, 0), {"cc_rtt_us": 41_000, "cc_min_rtt_us": 40_000}),
        (3, (1, 0, 2**31 - 1, 2**31 - 1, 0), {}),
        (0, (5, 5, 5, 5, 5), {}),
        (40, (5, 5, 5, 5, 5), {}),  # of a developer's own
    ],
)  # fmt: skip
def test_what_a_congestion_control_says(
    tmp_path: Path, kind: int, words: tuple[int, ...], want: dict[str, Any]
) -> None:
    found = state_of(tmp_path, **RATES, cc_kind=kind, cc=words)
    assert {name: value for name, value in found.items() if name in CC_COLUMNS} == want
    assert {name: value for name, value in found.items() if name not in CC_COLUMNS} == BITS


def test_the_digest_is_that_of_before_these_columns(tmp_path: Path) -> None:
    records = load_raw(point(tmp_path, events(SENT | RATES, ACKED | RATES).tobytes()))
    assert records.digest() == "8fe7a31a49cd6caa2e58eae8b9e68398ef54e768e53ce21c804baf1ae36dce81"
    records.save(tmp_path)
    for name in ("point.json", "outcome.json"):
        if not (tmp_path / name).exists():
            (tmp_path / name).write_text((tmp_path / "raw" / name).read_text())
    kept = Records.load(tmp_path)
    assert kept.tcp_events is not None
    assert records.tcp_events is not None
    assert kept.tcp_events.equals(records.tcp_events)
    assert kept.digest() == records.digest()


def untraced(where: Path) -> Path:
    write_point(where, Sender("prr", 20, 60, [0]).run().talk.captures())
    return where


@pytest.mark.parametrize(
    ("cut", "reported", "rows", "note"),
    [
        (9, {"records": 2}, 1, "tcp_events is cut off: want 2 events, got 1"),
        (0, {"lost": 12}, 2, "tcp_events lacks 12 packets or events: no buffer space, or not reported"),
    ],
)
def test_missing_events_are_noted(tmp_path: Path, cut: int, reported: dict[str, Any], rows: int, note: str) -> None:
    raw = events(SENT, ACKED).tobytes()
    records = load_raw(point(tmp_path, raw[: len(raw) - cut], **reported))
    assert records.tcp_events is not None
    assert records.tcp_events.num_rows == rows
    assert records.notes == [f"sender: {note}"]


@pytest.mark.parametrize(
    ("reported", "values", "text"),
    [
        ({"layout": 1}, {}, "want events of layout 2; the collector has 1"),
        ({"layout": None}, {}, "sender: want an integer of 64 bits at layout; got None"),
        ({"records": 1}, {}, "want 1 events of 96 bytes, as reported; got 2"),
        ({}, {"kind": 9}, "kind: want one of 0, 1, 2, 3; got 9"),
        ({}, {"state": 9}, "state: want one of 0, 1, 2, 3, 4; got 9"),
        ({}, {"limit": 6}, "limit: want one of 0, 1, 2, 3, 4, 5; got 6"),
    ],
)
def test_refused(tmp_path: Path, reported: dict[str, Any], values: dict[str, int], text: str) -> None:
    with pytest.raises(RecordsError, match=rf"(tcp_events\.bin|outcome\.json).*{text}"):
        load_raw(point(tmp_path, events(SENT, ACKED | values).tobytes(), **reported))


def test_the_window_at_exit_is_the_traced_one(tmp_path: Path) -> None:
    """cwnd and ssthresh of the last event before the recovery point is acknowledged, not of the capture."""
    talk = Sender("prr", 20, 60, [0]).run().talk
    plain = load_raw(untraced(tmp_path / "plain"))
    (before,) = flow_recoveries(plain, "bulk")
    assert before.window_source != "trace"
    inside = ACKED | {"acked_bytes": 1 + before.point - MSS, "cwnd": 15, "ssthresh": 12, "state": 3}
    after = ACKED | {"acked_bytes": 1 + before.point, "cwnd": 12, "ssthresh": 12, "time_ns": 9_001}
    (found,) = flow_recoveries(load_raw(point(tmp_path / "b", events(SENT, inside, after).tobytes(), talk)), "bulk")
    assert (found.cwnd_exit, found.ssthresh, found.excess_window, found.window_source) == (15, 12, 3, "trace")
    # BBR has no ssthresh.
    unset = inside | {"ssthresh": 0x7FFFFFFF}
    (found,) = flow_recoveries(load_raw(point(tmp_path / "u", events(SENT, unset, after).tobytes(), talk)), "bulk")
    assert (found.cwnd_exit, found.excess_window) == (15, None)
    # A trace that was not in recovery then does not tell.
    calm = inside | {"state": 0}
    (found,) = flow_recoveries(load_raw(point(tmp_path / "c", events(SENT, calm, after).tobytes(), talk)), "bulk")
    assert found.window_source == before.window_source
