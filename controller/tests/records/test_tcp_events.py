# SPDX-License-Identifier: Apache-2.0
"""The reader of what a kernel traced: its layout is the C struct's, and what it refuses or notes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.curves import series
from testctl.metrics.recovery import flow_recoveries, traced_events
from testctl.records import Records, RecordsError, digest_of, load_raw
from testctl.records.schema import TCP_EVENT_NAMES, TCP_EVENTS, Array
from testctl.records.tcp_events import LAYOUTS
from testctl_agent.tcp_trace import bpf
from testctl_agent.tcp_trace.lab import EVENT_BYTES, LAYOUT

from controller.tests.support.synthetic import Conversation, save, write_point
from controller.tests.support.synthetic_recovery import MSS, Sender

CLIENT, SERVER = 40000, 5001


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
    said = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout.split()
    fields = LAYOUTS[LAYOUT].fields or {}
    ours = [f"{number}" for name in names for number in (fields[name][1], fields[name][0].itemsize)]
    assert said == [*ours, str(LAYOUT), str(EVENT_BYTES)]
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


def point(where: Path, raw: bytes, talk: Conversation | None = None, **said: Any) -> Path:
    """A point whose sender was traced."""
    talk = talk or Sender("prr", 20, 60, [0]).run().talk
    write_point(where, talk.captures())
    document = where / "raw" / "outcome.json"
    outcome = json.loads(document.read_text())
    at = {"layout": LAYOUT, "records": len(raw) // EVENT_BYTES, "lost": 0}
    at["clock_offset_ns"] = outcome["t0_ns"]
    outcome.setdefault("collected", {}).setdefault("sender", {})["tcp_events"] = at | said
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


def test_saved_loaded_and_in_the_digest(tmp_path: Path) -> None:
    records = load_raw(point(tmp_path / "a", events(SENT, ACKED).tobytes()))
    without = load_raw(untraced(tmp_path / "b"))
    assert without.tcp_events is None
    assert without.digest() == digest_of(without.packets, without.tcp_info)
    assert records.digest() != without.digest()
    for one, name in ((records, "traced"), (without, "not")):
        save(one, tmp_path / name)
        assert (tmp_path / name / "tcp_events.parquet").exists() == (name == "traced")
        again = Records.load(tmp_path / name)
        assert again.digest() == one.digest()
        assert again.tcp_events == one.tcp_events


def untraced(where: Path) -> Path:
    write_point(where, Sender("prr", 20, 60, [0]).run().talk.captures())
    return where


def test_cut_off(tmp_path: Path) -> None:
    records = load_raw(point(tmp_path, events(SENT, ACKED).tobytes()[:-9], records=2))
    assert records.tcp_events is not None
    assert records.tcp_events.num_rows == 1
    assert records.notes == ["sender: tcp_events is cut off: want 2 events, got 1"]


def test_lost(tmp_path: Path) -> None:
    records = load_raw(point(tmp_path, events(SENT).tobytes(), lost=12))
    assert records.notes == ["sender: tcp_events lacks 12 packets or events: no buffer space, or not reported"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"layout": 2}, "want events of layout 1; the collector has 2"),
        ({"layout": None}, "sender: want an integer of 64 bits at layout; got None"),
        ({"records": 1}, "want 1 events of 56 bytes, as reported; got 2"),
    ],
)
def test_refused(tmp_path: Path, said: dict[str, Any], words: str) -> None:
    with pytest.raises(RecordsError, match=rf"(tcp_events\.bin|outcome\.json).*{words}"):
        load_raw(point(tmp_path, events(SENT, ACKED).tobytes(), **said))


@pytest.mark.parametrize("field", ["kind", "state"])
def test_what_there_is_not(tmp_path: Path, field: str) -> None:
    with pytest.raises(RecordsError, match=rf"want a {field} below \d; got 9"):
        load_raw(point(tmp_path, events(SENT, ACKED | {field: 9}).tobytes()))


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


def test_beside_the_capture_in_one_series(tmp_path: Path) -> None:
    records = load_raw(point(tmp_path, events(SENT, ACKED).tobytes()))
    every = series(records, "bulk", "tcp", 0)
    assert set(every["source"].to_pylist()) == {"kernel", "capture"}
    assert every.schema == TCP_EVENTS
    times = every["time_ns"].to_pylist()
    assert times == sorted(times)
    assert traced_events(records, "bulk").num_rows == 2
    wide = series(records, "bulk", "tcp", 10**12)
    assert sorted(wide["source"].to_pylist()) == ["capture", "kernel"]
