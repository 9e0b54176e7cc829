# SPDX-License-Identifier: Apache-2.0
"""Walks over packets in C give what numpy gives, bit by bit: on recorded, made up, damaged and random packets."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.metrics import analyse, recoveries_table, tcp_events
from testctl.metrics.core import matching, native, rtts, view
from testctl.metrics.core.bins import occupied_bins
from testctl.metrics.goodput import covered_bytes
from testctl.metrics.recovery.trace import traces
from testctl.metrics.recovery.trace_part import merged
from testctl.metrics.stalls.clock import waits
from testctl.records import RecordsError, load_raw
from testctl.records.native import FLAGS, SEARCH
from testctl_agent.spec.errors import Unavailable

from controller.tests.records.mutants import mutated
from controller.tests.records.test_native import SANITIZED
from controller.tests.support.synthetic import bulk, write_point
from controller.tests.support.synthetic_recovery import Sender

FIXTURES = Path(__file__).parent / "fixtures"
DAMAGED = 24


@contextmanager
def without_compiler() -> Iterator[None]:
    def refused(*_: Any) -> Path:
        raise Unavailable("gcc is not installed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "compiled", refused)
        patch.delenv(native.GIVEN, raising=False)
        native.if_compiled.cache_clear()
        assert native.if_compiled() is None
        yield
    native.if_compiled.cache_clear()


def walks() -> native.Walks:
    found = native.if_compiled()
    assert found is not None
    return found


def found_in(pointdir: Path) -> str:
    """All that metrics tell of a point; the error of records or values that can't be."""
    try:
        records = load_raw(pointdir)
        found = analyse(records)
        tables = [found.stalls, recoveries_table(records), *(tcp_events(records, flow) for flow in records.flows)]
    except (RecordsError, ArithmeticError, ValueError, IndexError) as error:
        return repr(error)
    return repr(found.metrics) + "".join(repr(table.to_pylist()) for table in tables)


def both(pointdir: Path) -> str:
    ours = found_in(pointdir)
    with without_compiler():
        assert found_in(pointdir) == ours
    return ours


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir()))
def test_recorded_points(name: str) -> None:
    assert "goodput_bps" in both(FIXTURES / name)


@pytest.mark.parametrize("rule", ["prr", "rfc6675", "rate_halving"])
def test_recoveries(rule: str, tmp_path: Path) -> None:
    for number, lost in enumerate(([0, 3, 7], [5, 6, 7, 30, 31], [58, 59])):
        where = tmp_path / str(number)
        write_point(where, Sender(rule, 20, 60, lost, late=[10]).run().talk.captures())
        assert "entered_by" in both(where)


def test_damaged_captures(tmp_path: Path) -> None:
    """Numbers that jump, times that go back, lengths that are none: either way the same numbers, or the same error."""
    whole = 0
    for seed in range(DAMAGED):
        where, draw = tmp_path / str(seed), random.Random(seed)
        captures = bulk(60) if seed % 2 else Sender("prr", 20, 60, [0, 3, 7]).run().talk.captures()
        write_point(where, captures)
        for capture in where.rglob("*.pcap"):
            capture.write_bytes(mutated(capture.read_bytes(), draw))
        whole += "goodput_bps" in both(where)
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
    tsval = draw.integers(0, 2**32, count)
    stamps, into_stamps = (draw.integers(0, 50, n) for n in (count, len(into_start)))
    amount = draw.integers(-(2**31), 2**31, count).astype(np.int32 if seed % 2 else np.int64)
    bins = [walks().bins(time_ns, amount, -7, width) for width in (1, 1000, 10**8)]
    covered, waited = walks().covered(start, end), walks().waits(time_ns, tsval)
    matched = matching.match((start, end, time_ns, stamps), (into_start, into_end, into_ns, into_stamps))
    covering = matching._covering(start, end, into_end - 1)
    with without_compiler():
        assert covered == covered_bytes(start, end)
        np.testing.assert_array_equal(waited, waits(time_ns, tsval))
        np.testing.assert_array_equal(covering, matching._covering(start, end, into_end - 1))
        wanted = matching.match((start, end, time_ns, stamps), (into_start, into_end, into_ns, into_stamps))
        np.testing.assert_array_equal(matched, wanted)
        for width, found in zip((1, 1000, 10**8), bins, strict=True):
            for got, want in zip(found, occupied_bins(time_ns, amount, -7, width), strict=True):
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
    with without_compiler():
        departures = matching.Wire(row, start, end, row, once)
        wanted = rtts._samples(departures, (sent_ns, ack_ns), line, repairs)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


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
    found, wanted = walks().trace(count + answers, **given), merged(given)
    assert list(found) == list(wanted)
    for name, column in found.items():
        assert column.dtype == wanted[name].dtype
        np.testing.assert_array_equal(column, wanted[name], name)


def test_sack_blocks_of_a_trace(tmp_path: Path) -> None:
    """Only ACKs that have some take an entry."""
    write_point(tmp_path, Sender("prr", 20, 60, [0, 3, 7]).run().talk.captures())
    (trace,) = traces(view.view(load_raw(tmp_path), "bulk"))
    whole = trace.part(0, len(trace))
    entries = whole.at[whole.is_ack]
    assert 0 < len(trace.blocks) - 1 == int((entries > 0).sum()) < len(entries)
    assert trace.edges(0) == []
    assert all(trace.edges(entry) for entry in range(1, len(trace.blocks)))


def test_walks_under_the_sanitizers(tmp_path: Path) -> None:
    """The comparisons above but of recorded points: no walk reads or writes beside a column, or overflows."""
    made = tmp_path / "sanitized.so"
    sources = [str(path) for path in native.SOURCES if path.suffix == ".c"]
    subprocess.run(["gcc", *FLAGS, *SANITIZED, f"-I{SEARCH.parent}", "-o", str(made), *sources], check=True)
    preload = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    env = os.environ | {native.GIVEN: str(made), "LD_PRELOAD": preload.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    done = subprocess.run([*argv, "-k", "random or damaged"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
