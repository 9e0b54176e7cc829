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
from testctl.records import RecordsError, load_raw
from testctl.records.schema import TCP_EVENT_NAMES, TCP_EVENTS, Array
from testctl.records.tcp_events import LAYOUTS
from testctl_agent.tcp_trace import bpf
from testctl_agent.tcp_trace.lab import EVENT_BYTES, LAYOUT

from controller.tests.support.synthetic import Conversation, write_point
from controller.tests.support.synthetic_recovery import MSS, Sender

CLIENT, SERVER = 40000, 5001


def test_the_names_of_events_are_those_that_a_kernel_records() -> None:
    (kinds,) = re.findall(
        r"enum tcp_event_kind {([^}]*)}", bpf.SOURCE.with_name("tcp_event.h").read_text(encoding="utf-8")
    )
    assert tuple(name.lower() for name in re.findall(r"TCP_EVENT_(\w+)", kinds)) == TCP_EVENT_NAMES


def test_the_layout_is_the_structs(tmp_path: Path) -> None:
    """offsetof and sizeof of tcp_event.h, compiled, beside the reader's."""
    names = LAYOUTS[LAYOUT].names or ()
    shown = "".join(f'printf("%zu %zu\\n", offsetof(struct tcp_event, {n}), sizeof(e.{n}));' for n in names)
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n#include <linux/types.h>\n"
        "struct tcp_sock { __u64 bytes_acked; __u32 snd_una, snd_nxt, snd_cwnd, snd_ssthresh, packets_out, sacked_out,"
        " lost_out, retrans_out, delivered, srtt_us; };\n"
        "#define tcp_event_get(tp, field) ((tp)->field)\n#define tcp_event_state(tp) 0\n"
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
        ({"layout": 2}, {}, "want events of layout 1; the collector has 2"),
        ({"layout": None}, {}, "sender: want an integer of 64 bits at layout; got None"),
        ({"records": 1}, {}, "want 1 events of 56 bytes, as reported; got 2"),
        ({}, {"kind": 9}, r"want a kind below \d; got 9"),
        ({}, {"state": 9}, r"want a state below \d; got 9"),
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
    # A trace that was not in recovery then does not tell.
    calm = inside | {"state": 0}
    (found,) = flow_recoveries(load_raw(point(tmp_path / "c", events(SENT, calm, after).tobytes(), talk)), "bulk")
    assert found.window_source == before.window_source
