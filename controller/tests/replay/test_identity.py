# SPDX-License-Identifier: Apache-2.0
"""What a replay is compared by, and the first record that differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from testctl.core.point import PointSpec, TimedFlow
from testctl.core.topology import Topology
from testctl.records import Records, load_raw
from testctl.records.schema import TCP_EVENTS, Array
from testctl.replay.identity import identity
from testctl.replay.instruments import WHOLE_BYTES, Instruments
from testctl_agent.collect import capture

from controller.tests.support.synthetic import bulk, write_point


def records(where: Path, captures: Mapping[str, Mapping[str, Array]]) -> Records:
    write_point(where, captures)
    return load_raw(where)


@pytest.fixture
def both(tmp_path: Path) -> Records:
    return records(tmp_path / "both", bulk(40))


def test_the_same_again(both: Records, tmp_path: Path) -> None:
    found = identity(both, both.digest(), records(tmp_path / "again", bulk(40)))
    assert found.same
    assert found.difference is None
    assert found.compared == {"packets": both.packets.num_rows, "tcp_info": 0}


def test_a_host_that_only_the_replay_captured_at_is_left_out(both: Records, tmp_path: Path) -> None:
    """The point had no capture at the receiver."""
    before = records(tmp_path / "one", {"sender": bulk(40)["sender"]})
    assert before.digest() != both.digest()
    found = identity(before, before.digest(), both)
    assert found.same
    assert found.left_out == ("receiver",)
    assert (
        found.words() == f"{before.packets.num_rows} rows of packets, 0 rows of tcp_info (not the packets at receiver)"
    )


def test_events_of_a_host_that_only_the_replay_traced_are_left_out(both: Records) -> None:
    def events(*wheres: str) -> pa.Table:
        count = len(wheres)
        names = {
            "where": list(wheres),
            "flow": ["bulk"] * count,
            "event": ["ack"] * count,
            "source": ["kernel"] * count,
        }
        numbers = {field.name: [7] * count for field in TCP_EVENTS if field.name not in names}
        arrays = {name: pa.array(values) for name, values in (names | numbers).items()}
        return pa.table([arrays[name] for name in TCP_EVENTS.names], names=TCP_EVENTS.names).cast(TCP_EVENTS)

    before = replace(both, tcp_events=events("sender"))
    after = replace(both, tcp_events=events("receiver", "sender", "receiver"))
    assert identity(before, before.digest(), after).same
    other = replace(both, tcp_events=events("receiver", "sender", "sender"))
    found = identity(before, before.digest(), other)
    assert not found.same
    assert found.difference is not None
    assert (found.difference.what, found.difference.index) == ("tcp_event", 1)


def test_the_first_row_that_differs_is_named(both: Records) -> None:
    lengths = both.packets.column("length").to_pylist()
    seqs = both.packets.column("seq").to_pylist()
    lengths[7] += 1
    seqs[7] += 3
    seqs[9] += 3
    packets = both.packets
    for name, values in (("length", lengths), ("seq", seqs)):
        index = packets.column_names.index(name)
        packets = packets.set_column(
            index, packets.schema.field(name), pa.array(values, packets.schema.field(name).type)
        )
    found = identity(both, both.digest(), replace(both, packets=packets, memo={}))
    assert not found.same
    assert found.difference is not None
    assert (found.difference.what, found.difference.index) == ("packet", 7)
    assert found.difference.fields == {"seq": (seqs[7] - 3, seqs[7]), "length": (lengths[7] - 1, lengths[7])}


def test_a_packet_more(both: Records) -> None:
    count = both.packets.num_rows - 1
    found = identity(both, both.digest(), replace(both, packets=both.packets.slice(0, count), memo={}))
    assert found.difference is not None
    assert (found.difference.index, found.difference.ended) == (count, "b")


def test_offsets_that_a_kernel_draws_do_not_count(both: Records) -> None:
    index = both.packets.column_names.index("tsval")
    moved = pa.array([value + 5 for value in both.packets.column("tsval").to_pylist()], pa.int64())
    again = replace(both, packets=both.packets.set_column(index, "tsval", moved), memo={})
    assert identity(both, both.digest(), again).same


def test_instruments_are_added_to_every_host_and_change_nothing_else() -> None:
    asked = PointSpec(
        "0",
        topology=Topology(hosts={"sender": "10.0.0.1", "receiver": "10.0.0.2"}),
        flows=(TimedFlow("bulk", "sender", "receiver", server_port=5001),),
        collect={
            "sender": {"counters": {"devices": "eth0"}, "capture": {"device": "eth0", "ports": "5001"}},
            "receiver": {"counters": {"devices": "eth0"}},
            "switch": {"counters": {"devices": "sender,receiver"}},
        },
    )
    assert Instruments().added(asked) == asked
    added = Instruments(packets=True, events=True, kernel_log=True).added(asked)
    assert added.kernel_log
    whole = {"device": "eth0", "ports": "5001", "snap_bytes": WHOLE_BYTES}
    for host in ("sender", "receiver"):
        assert list(added.collect[host]) == ["counters", "capture", "tcp_events"]
        assert added.collect[host]["capture"] == whole
    assert added.collect["switch"] == asked.collect["switch"]
    words = capture.argv(whole)
    assert words[words.index("-s") + 1] == str(WHOLE_BYTES)
    assert "snap_bytes" not in asked.collect["sender"]["capture"]
