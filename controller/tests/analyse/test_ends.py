# SPDX-License-Identifier: Apache-2.0
"""Where a file was captured; two files of both ends; what a capture that lacks packets can't tell."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from testctl.analyse import scan
from testctl.analyse.ends import ends_of
from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.records.errors import RecordsError
from testctl.records.files import read_object
from testctl.records.store import make_records

from controller.tests.analyse import written as w
from controller.tests.analyse.made import assessed, records_of
from controller.tests.analyse.written import Segment

FIXTURES = Path(__file__).parents[1] / "metrics" / "fixtures"
BOTH = [FIXTURES / "all_instruments" / "raw" / end / "capture" / "capture.pcap" for end in ("sender", "receiver")]


def here(path: Path, data: bytes) -> tuple[list[bool], str]:
    ends = ends_of(scan(w.write(path, data)).connections)
    return ends.here[0].tolist(), ends.why


def test_the_end_that_answers_the_handshake_at_once_captured(tmp_path: Path) -> None:
    assert here(tmp_path / "c", w.pcap(w.conversation())) == (
        [True, False],
        "one end answered the other's handshake at once",
    )
    assert here(tmp_path / "c", w.pcap(w.conversation(at_client=False)))[0] == [False, True]


@pytest.mark.parametrize("reply", [0, 50])
def test_a_host_that_talks_to_itself_is_captured_at_the_sender_of_most_data(tmp_path: Path, reply: int) -> None:
    segments = [replace(s, ends=("127.0.0.1", "127.0.0.1")) for s in w.conversation(rtt_ns=5_000, reply=reply)]
    records, found = assessed(tmp_path / "a", w.write(tmp_path / "c", w.pcap(segments, "null")))
    ends = {records.point.flows[0].source, records.point.flows[0].sink}
    assert ends == {"127.0.0.1", "127.0.0.1-peer"}
    assert found.metrics[records.flows[0]]["packets_sent"] == max(20, reply)


def test_an_answer_at_once_by_a_host_behind_a_router_tells_nothing(tmp_path: Path) -> None:
    routed = [replace(s, ttl=63 if s.up else 50) for s in w.conversation()]
    assert here(tmp_path / "c", w.pcap(routed)) == ([False, False], "")


def test_an_answer_that_took_a_millisecond_came_over_a_network(tmp_path: Path) -> None:
    slow = [replace(s, time_ns=s.time_ns + 10**6 * (index > 1)) for index, s in enumerate(w.conversation())]
    assert here(tmp_path / "c", w.pcap(slow)) == ([False, False], "")


@pytest.mark.parametrize("make", [lambda s: w.pcap(s, "cooked"), lambda s: w.pcapng(s, flags=True)])
def test_a_capture_that_says_what_came_in_and_went_out_is_believed(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    middle = w.conversation()[3:]
    assert here(tmp_path / "c", make(middle))[0] == [True, False]


def test_checksums_of_one_end_that_are_not_complete_are_its_own(tmp_path: Path) -> None:
    def pseudo(s: Segment) -> int:
        length = 20 + len(s.options) + s.length
        total = sum(int.from_bytes(part, "big") for part in (b"\x0a\x00", b"\x00\x01", b"\x0a\x00", b"\x00\x02"))
        return (total + 6 + length) % 65535

    segments = [replace(s, checksum=pseudo(s) if not s.up else 1) for s in w.conversation()[3:]]
    assert here(tmp_path / "c", w.pcap(segments)) == (
        [False, True],
        "the checksums of one end's packets were not complete",
    )


def test_what_a_proxy_answers_for_an_address_says_nothing_of_the_address_itself(tmp_path: Path) -> None:
    """Its packets have the TTL of a host and checksums that are not complete; the server's passed routers."""
    middle = w.conversation()[3:]
    total = sum(int.from_bytes(part, "big") for part in (b"\x0a\x00", b"\x00\x01", b"\x0a\x00", b"\x00\x02"))
    proxied = [replace(s, checksum=(total + 26 + len(s.options) + s.length) % 65535 if not s.up else 1) for s in middle]
    other = [replace(s, ports=(40001, 80), ttl=64 if s.up else 54, checksum=1) for s in middle]
    ends = ends_of(scan(w.write(tmp_path / "c", w.pcap([*proxied, *other]))).connections)
    assert ends.here.tolist() == [[False, True], [False, False]]


def test_a_capture_between_the_hosts_is_not_judged_and_knows_no_retransmissions(tmp_path: Path) -> None:
    records, found = assessed(tmp_path / "a", w.write(tmp_path / "c", w.pcap(w.conversation())), at="between")
    (flow,) = records.flows
    values = found.metrics[flow]
    assert {records.point.flows[0].source, records.point.flows[0].sink} == {"10.0.0.1", "before 10.0.0.2"}
    assert all(math.isnan(values[name]) for name in ("retransmissions", "violations", "rtt_p50_us", "packets_lost"))
    assert values["payload_bytes"] == 20_000


@pytest.mark.parametrize("fixture", ["loss", "delayed_ack", "all_instruments"])
@pytest.mark.parametrize("end", [0, 1])
def test_a_runs_own_capture_gives_the_rows_of_the_run(tmp_path: Path, fixture: str, end: int) -> None:
    raw = FIXTURES / fixture / "raw"
    spec = PointSpec.from_json(read_object(FIXTURES / fixture / "point.json"))
    of_run = make_records(spec, Outcome.from_json(read_object(raw / "outcome.json")), raw)
    host = ("sender", "receiver")[end]
    where, names = of_run.codes("where")
    want = of_run.packets.take(np.flatnonzero(where == names.index(host)))
    (file,) = (raw / host).rglob("capture.pcap")
    got = records_of(tmp_path / "a", file, at=("client", "server")[end])[0].packets
    assert got.num_rows == want.num_rows > 0
    apart = np.asarray(want["time_ns"]) - np.asarray(got["time_ns"])
    assert (apart == apart[0]).all()
    for name in set(want.schema.names) - {"time_ns", "where", "flow"}:
        assert got[name].to_pylist() == want[name].to_pylist(), name


def shifted(data: bytes, offset_ns: int, drift: float) -> bytes:
    made, at, first = bytearray(data[:24]), 24, 0
    while at < len(data):
        seconds, ns, captured, original = (int(value) for value in np.frombuffer(data, "<u4", 4, at))
        time = seconds * 10**9 + ns
        first = first or time
        time += offset_ns + round((time - first) * drift)
        made += np.array([time // 10**9, time % 10**9, captured, original], "<u4").tobytes()
        made += data[at + 16 : at + 16 + captured]
        at += 16 + captured
    return bytes(made)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("offset_s", "drift"), [(0, 0.0), (10_800, 50e-6), (-3, -120e-6)])
def test_two_ends_whose_clocks_differ_give_losses_and_latencies_of_one_clock(
    tmp_path: Path, turned: bool, offset_s: int, drift: float
) -> None:
    other = w.write(tmp_path / "other", shifted(BOTH[1].read_bytes(), offset_s * 10**9, drift))
    files = (other, BOTH[0]) if turned else (BOTH[0], other)
    records, found = assessed(tmp_path / "a", *files)
    values = found.metrics["10.0.0.1:40000-10.0.0.2:5001"]
    assert (values["packets_lost"], values["packets_sent"]) == (8, 112)
    assert values["latency_p50_us"] == pytest.approx(12_400, abs=60)
    assert values["clock_error_ns"] == pytest.approx(10e6, rel=0.01)
    assert ("drifts by" in str(records.notes)) == bool(drift)


def test_two_ends_are_matched_where_addresses_were_changed_between_them(tmp_path: Path) -> None:
    server = [
        replace(s, ends=("192.0.2.1", w.SERVER), ports=(50_000, 80), time_ns=s.time_ns + 10_000_000)
        for s in w.conversation(at_client=False)
    ]
    files = [w.write(tmp_path / "1", w.pcap(w.conversation())), w.write(tmp_path / "2", w.pcap(server))]
    records, found = assessed(tmp_path / "a", *files)
    assert found.metrics[records.flows[0]]["packets_lost"] == 0


def test_two_files_without_a_common_connection_are_refused(tmp_path: Path) -> None:
    others = [replace(s, ports=(1, 2), seq=s.seq + 5, ack=s.ack + 5) for s in w.conversation()]
    files = [w.write(tmp_path / "1", w.pcap(w.conversation())), w.write(tmp_path / "2", w.pcap(others))]
    with pytest.raises(RecordsError, match="to compare two ends; got none"):
        records_of(tmp_path / "a", *files)


def test_bytes_that_the_capture_lacks_are_not_taken_for_losses(tmp_path: Path) -> None:
    segments = w.conversation(data=20)
    del segments[9]
    records, found = assessed(tmp_path / "a", w.write(tmp_path / "c", w.pcap(segments)))
    (flow,) = records.flows
    assert f"{flow}: the capture lacks 1000 bytes that were acknowledged" in str(records.notes)
    assert found.verdict == "pass"
    assert all(math.isnan(found.metrics[flow][name]) for name in ("retransmissions", "violations", "stall_count"))


def test_a_must_that_is_broken_fails_and_a_should_does_not(tmp_path: Path) -> None:
    segments = w.conversation()
    window = [*segments[:6], replace(segments[6], window=900), *segments[7:]]
    _, found = assessed(tmp_path / "a", w.write(tmp_path / "c", w.pcap(window)), at="server")
    assert (found.verdict, {entry["rule"] for entry in found.violations}) == ("pass", {"window-moves-back"})
    beyond = [replace(segments[1], window=10), *segments[2:4]]
    beyond = [segments[0], *(replace(s, window=1) if not s.up else s for s in segments[1:])]
    _, found = assessed(tmp_path / "b", w.write(tmp_path / "d", w.pcap(beyond)), at="client")
    assert found.verdict == "fail"
    assert "beyond-window" in found.reason
