# SPDX-License-Identifier: Apache-2.0
"""Exports of made-up and of real points, read back by protobuf's own parser and as JSON."""

from __future__ import annotations

import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from testctl.curves import Line
from testctl.exports import perfetto, write_perfetto, write_qlog
from testctl.metrics import stalls_table
from testctl.metrics.recovery import tcp_events
from testctl.records import Records, load_raw
from testctl.results import RunPoint
from testctl_agent.spec.errors import PlanError

from controller.tests.support.synthetic_exports import MSS, loaded, lossy, point_of, recorded, written

FIXTURES = Path(__file__).parents[1] / "metrics" / "fixtures"

MESSAGES = """
Trace 1 packet r TracePacket
TracePacket 8 timestamp o u, 10 trusted_packet_sequence_id o u, 11 track_event o TrackEvent, 60 track_descriptor o Track
Track 1 uuid o u, 2 name o s, 3 process o Process, 5 parent_uuid o u, 8 counter o Counter
Process 1 pid o u, 6 process_name o s
Counter 3 unit o u, 6 unit_name o s
TrackEvent 4 debug_annotations r Note, 9 type o u, 11 track_uuid o u, 23 name o s, 44 double_counter_value o d
Note 6 string_value o s, 10 name o s
"""
"""The part of Perfetto's perfetto_trace.proto that is used: number, name, repeated or optional, type of each field."""


@pytest.fixture(scope="module")
def parse() -> Callable[[bytes], Any]:
    file = descriptor_pb2.FileDescriptorProto(name="part.proto", package="part", syntax="proto2")
    kinds = {"u": 4, "s": 9, "d": 1}  # uint64, string, double
    for line in MESSAGES.strip().splitlines():
        name, fields = line.split(maxsplit=1)
        message = file.message_type.add(name=name)
        for number, field, label, kind in (entry.split() for entry in fields.split(", ")):
            added = message.field.add(name=field, number=int(number), label=3 if label == "r" else 1)
            added.type = kinds.get(kind, 11)
            if kind not in kinds:
                added.type_name = f".part.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("part.Trace")).FromString


@pytest.fixture
def talk(tmp_path: Path) -> RunPoint:
    return point_of(recorded(tmp_path / "raw", lossy().captures()), tmp_path / "run")


@pytest.fixture(params=sorted(path.name for path in FIXTURES.iterdir()))
def real(request: pytest.FixtureRequest, tmp_path: Path) -> RunPoint:
    return point_of(load_raw(FIXTURES / request.param), tmp_path / "run")


def tracks(trace: Any) -> dict[str, list[tuple[int, int, str, float]]]:
    """The events of each track, by its group's name and its own: (time, type, name, value), by time."""
    names, events = dict[int, str](), defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            own = f"{names[track.parent_uuid]} | {track.name}" if track.parent_uuid else track.process.process_name
            assert track.uuid not in names
            assert own not in names.values()
            names[track.uuid] = own
        else:
            assert packet.trusted_packet_sequence_id == 1
            event = packet.track_event
            place = names[event.track_uuid]
            events[place].append((packet.timestamp, event.type, event.name, event.double_counter_value))
    return {name: sorted(entries, key=lambda entry: entry[0]) for name, entries in events.items()}


def test_a_trace_of_perfetto_has_states_stalls_windows_and_losses_at_their_ns(talk: RunPoint, parse: Any) -> None:
    seen = tracks(parse(written(write_perfetto, talk)))
    group = "bulk/0 sender → receiver"
    assert seen[f"{group} | connection"] == [(0, 1, "bulk/0", 0), (300_230_000, 2, "", 0)]
    assert [entry[:3] for entry in seen[f"{group} | sent again"]] == [
        (140_000, 3, f"{2 * MSS}..{3 * MSS}"),
        (300_200_000, 3, f"{9 * MSS}..{10 * MSS}"),
    ]
    assert [(at, name) for at, _, name, _ in seen[f"{group} | state"] if name] == [
        (100_001, "open"), (131_000, "disorder"), (140_000, "recovery"), (170_000, "open"),
        (300_200_000, "loss"), (300_230_000, "open"),
    ]  # fmt: skip
    (begin, end) = seen[f"{group} | stalls"]
    assert (begin[0], begin[2], end[:2]) == (200_000, "rto", (300_200_000, 2))
    flight = [(at, value) for at, _, _, value in seen[f"{group} | in flight"]]
    assert flight[:9] == [(100_001 + 1000 * n, n + 1) for n in range(9)]
    assert flight[9:] == [(130_000, 7), (131_000, 0), (140_000, 1), (170_000, 0), (200_000, 1), (300_230_000, 0)]


def test_slices_of_real_points_begin_and_end_in_turn_and_states_are_those_of_the_events(
    real: RunPoint, parse: Any
) -> None:
    records = loaded(real)
    seen = tracks(parse(written(write_perfetto, real)))
    for name, entries in seen.items():
        if name.endswith(("connection", "state", "stalls")):
            last = entries.pop() if entries[-1][1] == 3 else None  # a state that begins with the last event
            assert last is None or name.endswith("state")
            assert [kind for _, kind, _, _ in entries] == [1, 2] * (len(entries) // 2), name
    stalls = [
        name for track, entries in seen.items() if track.endswith("| stalls") for _, _, name, _ in entries if name
    ]
    assert Counter(stalls) == Counter(stalls_table(records)["cause"].to_pylist())
    broken = [name for track, entries in seen.items() if track.endswith("violated rules") for _, _, name, _ in entries]
    assert Counter(broken) == Counter(entry["rule"] for entry in real.violations for _ in entry["first"])
    packets = sum(len(entries) for track, entries in seen.items() if track.endswith("| sent again"))
    expected = records.packets.to_pandas().query("retrans and out and length > 0 and `where` == 'sender'")
    assert packets == len(expected)
    for flow in records.flows:
        if not records.tcp_events:
            last = tcp_events(records, flow).to_pylist()[-1]
            assert seen[f"{flow}/0 sender → receiver | in flight"][-1][3] == last["pipe"]


def test_a_long_track_is_thinned_and_the_export_says_so(
    talk: RunPoint, monkeypatch: pytest.MonkeyPatch, parse: Any
) -> None:
    monkeypatch.setattr(perfetto, "MOST_SAMPLES", 4)
    file = io.BytesIO()
    _, notes = write_perfetto(talk, loaded(talk), file)
    assert len(tracks(parse(file.getvalue()))["bulk/0 sender → receiver | in flight"]) <= 4
    assert any(note.startswith("bulk/0 in flight: ") and note.endswith("the same picture") for note in notes)
    assert "bulk/0 state: the first 4 of 6" in notes


def test_packets_from_before_t0_have_no_time_below_0(tmp_path: Path, parse: Any) -> None:
    records = recorded(tmp_path / "raw", lossy().captures())
    early = records.packets.set_column(0, "time_ns", (np.asarray(records.packets["time_ns"]) - 5_000,))
    moved = Records(early.cast(records.packets.schema), records.tcp_info, {}, records.outcome, records.point)
    seen = tracks(parse(written(write_perfetto, point_of(moved, tmp_path / "run"))))
    assert seen["bulk/0 sender → receiver | connection"][0][0] == 0


def test_what_begins_before_the_first_packet_begins_with_it(parse: Any) -> None:
    """A bin of marks, and what the kernel traced of a packet that had not left."""
    file = io.BytesIO()
    made = perfetto._Tracks(file, -5_000, [])
    group = made.track("group")
    made.numbers(Line("bins", np.array([-1_000_000, 3_000]), np.array([1, 2])), group, "ppm")
    made.slices("state", group, [(-6_000, 1_000, "open", {}), (-7_000, -7_000, "lost", {})])
    seen = tracks(parse(file.getvalue()))
    assert [at for at, *_ in seen["group | bins"]] == [0, 8_000]
    assert [(at, kind) for at, kind, *_ in seen["group | state"]] == [(0, 1), (0, 3), (6_000, 2)]


def test_traces_of_a_flow_are_together_however_much_each_carries(tmp_path: Path) -> None:
    """What is computed of a flow is dropped with the next one."""
    records = recorded(tmp_path / "raw", lossy().captures())
    rows = records.packets.to_pylist()
    many = [row | {"flow": flow, "conn": conn} for number, flow in enumerate(("bulk", "other")) for conn in range(5)
            for row in rows[: len(rows) - 2 * conn - number]]  # fmt: skip
    many.sort(key=lambda row: int(row["time_ns"]))
    names = records.packets.schema.names
    table = pa.table({name: pa.array([row[name] for row in many]) for name in names}).cast(records.packets.schema)
    (bulk,) = records.point.flows
    flows = tuple(replace(bulk, name=name, parallel=5) for name in ("bulk", "other"))
    made = replace(records, packets=table, point=replace(records.point, flows=flows), memo={})
    log = json.loads(written(write_qlog, point_of(made, tmp_path / "run")))
    assert [trace["title"].partition("/")[0] for trace in log["traces"]] == ["bulk"] * 5 + ["other"] * 5


def events(point: RunPoint) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    log = json.loads(written(write_qlog, point))
    assert (log["qlog_version"], log["qlog_format"]) == ("0.3", "JSON")
    for trace in log["traces"]:
        times = [event["time"] for event in trace["events"]]
        assert times == sorted(times)
        yield trace, trace["events"]


def named(listed: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event | event["data"] for event in listed if event["name"] == name]


def ranges(
    listed: list[dict[str, Any]], name: str = "transport:packet_received"
) -> list[tuple[float, list[list[int]]]]:
    frames = [(event["time"], frame) for event in named(listed, name) for frame in event.get("frames", [])]
    return [(time, frame["acked_ranges"]) for time, frame in frames if frame["frame_type"] == "ack"]


def test_a_qlog_numbers_packets_and_names_those_that_each_ack_was_the_first_to_acknowledge(talk: RunPoint) -> None:
    ((trace, listed),) = events(talk)
    assert trace["vantage_point"] == {"name": "sender", "type": "client"}
    sent = named(listed, "transport:packet_sent")
    assert [event["header"]["packet_number"] for event in sent] == list(range(13))
    assert [event["time"] for event in sent[1:4]] == [0.100001, 0.101001, 0.102001]
    # 0 is the SYN, 1 to 9 are data, 10 is number 3 again, 11 data, and 12 number 11 again
    assert ranges(listed) == [
        (0.02, [[0, 0]]),
        (0.13, [[1, 2]]),
        (0.131, [[4, 9]]),
        (0.17, [[10, 10]]),
        (300.23, [[12, 12]]),
    ]
    lost = [
        (event["time"], event["header"]["packet_number"], event.get("trigger"))
        for event in named(listed, "recovery:packet_lost")
    ]
    assert lost == [(0.14, 3, None), (300.2, 11, "pto_expired")]
    assert [event.get("trigger") for event in (sent[10], sent[12])] == ["retransmit_reordered", "retransmit_timeout"]
    assert sent[12]["frames"][0] == {
        "frame_type": "stream",
        "stream_id": 0,
        "offset": 9 * MSS,
        "length": MSS,
        "fin": True,
    }
    states = [event["new"] for event in named(listed, "recovery:congestion_state_updated")]
    assert states == ["open", "disorder", "recovery", "open", "loss", "open"]
    flights = [
        event["bytes_in_flight"] for event in named(listed, "recovery:metrics_updated") if "bytes_in_flight" in event
    ]
    assert flights[:9] == [MSS * (n + 1) for n in range(9)]
    assert any("stalls: rto for 300.000000 ms" in event["message"] for event in named(listed, "generic:info"))


def test_the_receivers_capture_alone_has_its_own_acks_and_no_window(tmp_path: Path) -> None:
    captures = {"receiver": lossy().captures()["receiver"]}
    ((trace, listed),) = events(point_of(recorded(tmp_path / "raw", captures), tmp_path / "run"))
    assert trace["vantage_point"] == {"name": "receiver", "type": "server"}
    # arrivals: 0 is the SYN, then data 1, 2, 4 to 9, 3 and 10; its SYN-ACK has number 0
    assert ranges(listed, "transport:packet_sent") == [
        (0.01, [[0, 0]]),
        (0.12, [[1, 2]]),
        (0.16, [[3, 9]]),
        (300.22, [[10, 10]]),
    ]
    assert not named(listed, "recovery:metrics_updated")


def test_each_packet_of_a_real_point_is_acknowledged_or_lost_once_or_outstanding(real: RunPoint) -> None:
    packets = loaded(real).packets.to_pandas()
    for trace, listed in events(real):
        sent = {event["header"]["packet_number"]: event for event in named(listed, "transport:packet_sent")}
        received = named(listed, "transport:packet_received")
        flow, conn = trace["title"].partition(":")[0].rsplit("/", 1)
        own = packets[(packets["flow"] == flow) & (packets["conn"] == int(conn)) & (packets["where"] == "sender")]
        assert (len(sent), len(received)) == (own["out"].sum(), (~own["out"]).sum())
        assert sum(event["raw"]["payload_length"] for event in sent.values()) == own[own["out"]]["length"].sum()
        acked = [n for _, blocks in ranges(listed) for first, last in blocks for n in range(first, last + 1)]
        lost = [event["header"]["packet_number"] for event in named(listed, "recovery:packet_lost")]
        assert len({*acked, *lost}) == len(acked) + len(lost)
        assert {*acked, *lost} <= set(sent)
        highest = max(event["tcp"]["ack"] for event in received)
        for number in set(sent) - {*acked, *lost}:
            packet = sent[number]
            again = packet.get("trigger") is not None
            assert (
                not packet["raw"]["payload_length"]
                or again
                or packet["tcp"]["seq"] + packet["raw"]["payload_length"] > highest
            )


@pytest.mark.parametrize("write", [write_perfetto, write_qlog])
def test_two_exports_are_the_same_bytes_and_a_flow_without_packets_is_refused(talk: RunPoint, write: Any) -> None:
    assert written(write, talk) == written(write, talk)
    with pytest.raises(PlanError, match="want packets"):
        written(write, talk, "none")
