# SPDX-License-Identifier: Apache-2.0
"""Walks over packets in C give what slow references give on random packets, and damaged ones do no harm."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.metrics import analyse, recoveries_table, tcp_events
from testctl.metrics.core import native, view
from testctl.metrics.core.native import walks
from testctl.metrics.recovery.trace import traces
from testctl.records import RecordsError, load_raw

from controller.tests.records.mutants import mutated
from controller.tests.support.native import sanitized
from controller.tests.support.synthetic import bulk, write_point
from controller.tests.support.synthetic_recovery import Sender

DAMAGED = 24


def test_damaged_captures(tmp_path: Path) -> None:
    """Numbers that jump, times that go back, lengths that are none: metrics, or an error of Python's."""
    whole = 0
    for seed in range(DAMAGED):
        where, draw = tmp_path / str(seed), random.Random(seed)
        captures = bulk(60) if seed % 2 else Sender("prr", 20, 60, [0, 3, 7]).run().talk.captures()
        write_point(where, captures)
        for capture in where.rglob("*.pcap"):
            capture.write_bytes(mutated(capture.read_bytes(), draw))
        with suppress(RecordsError, ArithmeticError, ValueError, IndexError):
            records = load_raw(where)
            whole += "goodput_bps" in repr(analyse(records).metrics)
            recoveries_table(records)
            for flow in records.flows:
                tcp_events(records, flow)
    assert whole > DAMAGED // 4


def intervals(draw: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Nearly in order, as packets are, with some that come again."""
    start = np.cumsum(draw.integers(0, 30, count)) - 50
    again = draw.integers(0, count, count // 8)
    start[again] = start[draw.integers(0, count, len(again))]
    return start, start + draw.integers(1, 40, count)


@pytest.mark.parametrize("seed", range(30))
def test_random_columns(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = int(draw.integers(1, 3000))
    start, end = intervals(draw, count)
    into_start, into_end = intervals(draw, int(draw.integers(1, 3000)))
    time_ns, into_ns = (np.sort(draw.integers(-(10**6), 10**9, n)) for n in (count, len(into_start)))
    assert walks().covered(start, end) == len(set().union(*map(range, start.tolist(), end.tolist())))

    tsval = draw.integers(0, 2**32, count)
    waited = time_ns // 10**6 - (tsval - tsval[0]).astype(np.uint32).view(np.int32)
    np.testing.assert_array_equal(walks().waits(time_ns, tsval), (waited - waited.min()) * 10**6)

    byte, begins, ends = into_end - 1, np.sort(start), np.sort(end)
    covering = np.searchsorted(begins, byte, "right") - np.searchsorted(ends, byte, "right")
    np.testing.assert_array_equal(walks().covering(begins, ends, byte), covering)

    by_end = np.argsort(into_end, kind="stable")
    ends = into_end[by_end]
    first = by_end[np.minimum(at := np.searchsorted(ends, end - 1, "right"), len(ends) - 1)]
    good = (at < len(ends)) & (into_start[first] < end) & (into_ns[first] >= time_ns)
    found = walks().match((end, time_ns), (into_start, ends, into_ns), by_end)
    np.testing.assert_array_equal(found, np.where(good, first, -1))

    amount = draw.integers(-(2**31), 2**31, count).astype(np.int32 if seed % 2 else np.int64)
    for width in (1, 1000, 10**8):
        number, group = np.unique((time_ns + 7) // width, return_inverse=True)
        np.add.at(total := np.zeros(len(number), np.int64), group, amount)
        for got, want in zip(walks().bins(time_ns, amount, -7, width), (number, total), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("seed", range(20))
def test_random_round_trips(seed: int) -> None:
    """Two connections, ACKs before their data, retransmissions."""
    draw = np.random.default_rng(seed)
    count, answers = int(draw.integers(1, 500)), int(draw.integers(1, 500))
    axis = np.sort(draw.integers(0, 2, count)) << view.CONN_BITS
    start, end = (axis + edge for edge in intervals(draw, count))
    highest = np.maximum.accumulate(
        (np.sort(draw.integers(0, 2, answers)) << 42) + draw.integers(0, 15 * count, answers)
    )
    sent_ns, ack_ns = np.sort(draw.integers(0, 10**6, count)), np.sort(draw.integers(0, 10**6, answers))
    line = (highest, draw.permutation(answers))
    once = draw.random(count) < 0.9
    row = draw.integers(0, count, count)
    repairs = (
        np.sort((draw.integers(0, 2, 3) << 47) + draw.integers(0, 10**6, 3)) if seed % 3 else np.empty(0, np.int64)
    )
    found = walks().round_trips(
        row=row, start=start, end=end, once=once, packets=count, sent_ns=sent_ns, highest=line[0], position=line[1],
        ack_ns=ack_ns, acks=answers, again=repairs, agains=len(repairs),
    )  # fmt: skip
    wanted = []
    for packet, at in enumerate(np.searchsorted(highest, end)):
        conn = int(start[packet]) >> view.CONN_BITS
        if at == answers or not once[packet] or int(highest[at] + 1) >> view.CONN_BITS != conn:
            continue
        left, back = sent_ns[row[packet]], ack_ns[line[1][at]]
        since, until = np.searchsorted(repairs, [(conn << 47) + left, (conn << 47) + back], "right")
        if back >= left and since == until:
            wanted.append((back, back - left, conn))
    assert list(zip(*(column.tolist() for column in found), strict=True)) == wanted


@pytest.mark.parametrize("seed", range(20))
def test_random_traces(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = draw.permutation(400)
    count, answers = int(draw.integers(0, 200)), int(draw.integers(0, 200))
    sack = np.flatnonzero(draw.random(answers) < 0.3)
    given: dict[str, Any] = {
        "data_row": np.sort(rows[:count]), "ack_row": np.sort(rows[200 : 200 + answers]), "data": count,
        "acks": answers, "sack": sack, "sack_top": draw.integers(-1, 10**6, len(sack)), "sacks": len(sack),
        "una": int(draw.integers(-5, 5)), "nxt": int(draw.integers(-5, 5)),
        "fin": draw.random(count) < 0.1, "retrans": draw.random(count) < 0.1,
        "segs": draw.integers(1, 9, count).astype(np.int16), "length": draw.integers(0, 9000, count).astype(np.int32),
        "ack_length": draw.integers(0, 2, answers).astype(np.int32),
    }  # fmt: skip
    given |= {name: draw.integers(-(10**6), 10**6, count) for name in ("data_ns", "seq")}
    given |= {name: draw.integers(-(10**6), 10**6, answers) for name in ("ack_ns", "ack")}
    found = walks().trace(count + answers, **given)
    una, nxt, blocks = given["una"], given["nxt"], dict(zip(sack.tolist(), given["sack_top"].tolist(), strict=True))
    events = sorted([(given["data_row"][i], False, i) for i in range(count)]
                    + [(given["ack_row"][i], True, i) for i in range(answers)])  # fmt: skip
    for event, (row, is_ack, i) in enumerate(events):
        wanted = dict.fromkeys(native.TRACE, 0) | {"row": row, "is_ack": is_ack}
        if is_ack:
            number = given["ack"][i]
            una = max(una, number)
            wanted |= {"time_ns": given["ack_ns"][i], "number": number, "plain": given["ack_length"][i] == 0}
            wanted |= {"at": list(blocks).index(i) + 1 if i in blocks else 0, "top": max(number, blocks.get(i, -1))}
        else:
            seq, length = given["seq"][i], given["length"][i]
            nxt = max(nxt, seq + length + given["fin"][i])
            wanted |= {"time_ns": given["data_ns"][i], "seq": seq, "end": seq + length + given["fin"][i]}
            wanted |= {"payload": length, "segs": given["segs"][i] if length else 0, "again": given["retrans"][i]}
        assert {name: column[event] for name, column in found.items()} == wanted | {"una": una, "nxt": nxt}


def test_sack_blocks_of_a_trace(tmp_path: Path) -> None:
    """Only ACKs that have some take an entry."""
    write_point(tmp_path, Sender("prr", 20, 60, [0, 3, 7]).run().talk.captures())
    (trace,) = traces(view.view(load_raw(tmp_path), "bulk"))
    whole = trace.part(0, len(trace))
    entries = whole.at[whole.is_ack]
    assert 0 < len(trace.blocks) - 1 == int((entries > 0).sum()) < len(entries)
    assert trace.edges(0) == []
    assert all(trace.edges(entry) for entry in range(1, len(trace.blocks)))


@pytest.mark.long
def test_walks_under_the_sanitizers(tmp_path: Path) -> None:
    """The tests above: no walk reads or writes beside a column, or overflows."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    env = sanitized(tmp_path / "sanitized.so")
    done = subprocess.run([*argv, "-k", "random or damaged"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
