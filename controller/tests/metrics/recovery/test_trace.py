# SPDX-License-Identifier: Apache-2.0
"""Traces, of which only parts have columns: a part is one of the whole, and what is asked of all is found in it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from testctl.metrics.core.view import view
from testctl.metrics.recovery import capture_gaps, recoveries_table, tcp_events, trace
from testctl.metrics.recovery.trace import Trace, traces
from testctl.records import Records, RecordsError, load_raw

from controller.tests.records.mutants import mutated
from controller.tests.support.synthetic import bulk, write_point
from controller.tests.support.synthetic_recovery import Sender


def points(where: Path) -> list[Records]:
    """Whole and damaged captures, of connections with losses and without, with their SYN and without."""
    found = []
    for seed in range(24):
        draw, pointdir = random.Random(seed), where / str(seed)
        captures = bulk(60) if seed % 4 == 3 else Sender("prr", 20, 60, [0, 3, 7, 40], late=[10]).run().talk.captures()
        write_point(pointdir, captures)
        for capture in pointdir.rglob("*.pcap") if seed % 3 else []:
            capture.write_bytes(mutated(capture.read_bytes(), draw))
        try:
            found.append(load_raw(pointdir))
        except RecordsError:
            continue
    assert len(found) > 12
    return found


def anew(records: Records) -> list[Trace]:
    records.memo.clear()
    return [one for name in records.flows for one in traces(view(records, name))]


def in_small_parts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(trace, "_AT_ONCE", 8)
    patch.setattr(trace, "_BEFORE", 3)
    patch.setattr(capture_gaps, "_BLOCK", 3)


def test_a_part_is_a_part_of_the_whole(tmp_path: Path) -> None:
    draw = random.Random(1)
    for records in points(tmp_path):
        for one in anew(records):
            whole = one.part(0, len(one))
            with pytest.MonkeyPatch.context() as patch:
                in_small_parts(patch)
                for _ in range(40):
                    one._made.clear()
                    low, high = sorted(draw.choices(range(len(one) + 1), k=2))
                    part, wanted = one.part(low, high), whole.part(low, high)
                    assert part.first == low
                    for name in set(vars(wanted)) - {"first"}:
                        np.testing.assert_array_equal(getattr(part, name), getattr(wanted, name), name)


def test_what_is_asked_of_a_whole_trace(tmp_path: Path) -> None:
    """By the columns of all its events."""
    for records in points(tmp_path):
        for one in anew(records):
            whole = one.part(0, len(one))
            data, acks = np.flatnonzero(~whole.is_ack), np.flatnonzero(whole.is_ack)
            assert [one.event_of_data(n) for n in range(len(data))] == data.tolist()
            assert [one.event_of_ack(n) for n in range(len(acks))] == acks.tolist()
            assert [one.end_of(n) for n in range(len(data))] == whole.end[data].tolist()
            assert one.last_ns == whole.time_ns[-1]
            for event in range(len(one)):
                before = (int((data < event).sum()), int((acks < event).sum()))
                assert one.before(event) == before
                after = one.before(event + 1)
                assert (one.una_after(after[1]), one.nxt_after(after[0])) == (whole.una[event], whole.nxt[event])
                if event and not whole.is_ack[event]:
                    assert one.time_before(before[0], event) == whole.time_ns[event - 1]
            for byte in {one.start, *whole.una.tolist(), *whole.end.tolist(), int(whole.una[-1]) + 1}:
                assert one.reached(byte) == np.searchsorted(whole.una, byte)


def test_recoveries_do_not_depend_on_how_much_is_looked_at_at_once(tmp_path: Path) -> None:
    some = 0
    for records in points(tmp_path):
        found = []
        for small in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                if small:
                    in_small_parts(patch)
                records.memo.clear()
                found.append([recoveries_table(records), *(tcp_events(records, name) for name in records.flows)])
        assert found[0] == found[1]
        some += found[0][0].num_rows
    assert some > 12
