# SPDX-License-Identifier: Apache-2.0
"""The same source, the same experiment (one_experiment.py): built into the lab's kernels and as BPF of this one.

Each decision of either is that of the same text compiled here, on the inputs that it had.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path

import pytest
from testctl_agent.cc.host import replay
from testctl_agent.cc.interface import Operation, Record
from testctl_agent.cc.struct_ops import unavailable
from testctl_agent.switch import testbed_object

from agents.tests.cc.one_experiment import DROPPED
from agents.tests.cc.sources import algorithm

SCRIPT = Path(__file__).with_name("one_experiment.py")
NAMES = ("areno", "reno_prr")
FLIGHTS = ("600-622,624,627", "600-640,642,645")
"""Packets that are a flight, its timeouts, and some retransmissions: kernels have sent differently much by then."""
no_struct_ops = pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "-")


def read(file: Path) -> list[Record]:
    data, size = file.read_bytes(), ctypes.sizeof(Record)
    assert data
    assert len(data) % size == 0
    return [Record.from_buffer_copy(data[at : at + size]) for at in range(0, len(data), size)]


def built_in(in_lab: Callable[..., str], name: str, file: Path, *dropped: str) -> list[Record]:
    said = in_lab(
        f"""
        import runpy, sys
        sys.argv = [{str(SCRIPT)!r}, "lab", {name!r}, {str(file)!r}, *{dropped!r}]
        runpy.run_path(sys.argv[0], run_name="__main__")
        """,
        TESTCTL_PROGRAM=str(testbed_object.path()),
    )
    assert said.endswith("done\n")
    return read(file)


@pytest.fixture(scope="module")
def as_bpf(in_namespace: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Record]]:
    @cache
    def records(name: str) -> list[Record]:
        file = tmp_path_factory.mktemp(name) / "trace"
        assert in_namespace(SCRIPT, "root", name, str(file)).endswith("done\n")
        return read(file)

    return records


def judge(name: str, records: list[Record]) -> None:
    """All went as the experiment wants, and all was decided as the code decides here."""
    count = [Operation(record.operation) for record in records].count
    assert len({record.socket for record in records}) == 1
    assert [record.operation for record in records[:3]].count(Operation.INIT) == 1, "but for the handshake's ACK, first"
    assert count(Operation.INIT) == 1
    assert count(Operation.ACK) > 500
    assert count(Operation.LOSS) >= len(DROPPED) / 2, "neighbours share a reduction"
    for record in records:
        if name == "areno" and record.operation == Operation.LOSS:
            assert record.before.cwnd // 2 <= record.result <= record.before.cwnd
    wrong = replay(algorithm(name), records)
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.lab
@pytest.mark.parametrize("name", NAMES)
def test_built_in(in_lab: Callable[..., str], tmp_path: Path, name: str) -> None:
    judge(name, built_in(in_lab, name, tmp_path / "trace"))


@pytest.mark.lab
def test_a_recovery_after_a_timeout_begins_anew(in_lab: Callable[..., str], tmp_path: Path) -> None:
    """A whole flight, its probe and timeouts are lost, then retransmissions: Linux goes from Loss to Recovery."""
    for packets in FLIGHTS:
        records = built_in(in_lab, "reno_prr", tmp_path / "trace", packets)
        begun = [
            (before.event.pipe, Operation(now.operation), now.after.cwnd <= now.event.pipe + 1)
            for before, now in pairwise(records)
            if before.operation == Operation.LOSS
        ]
        assert {operation for _, operation, _ in begun} <= {Operation.ACK, Operation.RECOVERY_ENTER}, "ACK: in Loss"
        assert all(one_packet for _, operation, one_packet in begun if operation == Operation.RECOVERY_ENTER)
        assert not replay(algorithm("reno_prr"), records)
        if (0, Operation.RECOVERY_ENTER, True) in begun:  # all that is outstanding is lost
            return
    pytest.fail("no recovery began after a timeout")


@pytest.mark.alone
@no_struct_ops
@pytest.mark.parametrize("name", NAMES)
def test_as_bpf(as_bpf: Callable[[str], list[Record]], name: str) -> None:
    judge(name, as_bpf(name))


def test_a_decision_that_differs_is_found() -> None:
    """What the other tests rest on: a window that is one off does not pass."""
    init, ack = Record(operation=Operation.INIT), Record(operation=Operation.ACK)
    for record in (init, ack):
        record.before.cwnd, record.before.ssthresh = 10, 1000
        record.after.cwnd, record.after.ssthresh = 10, 1000
    ack.event.acked, ack.event.limited, ack.after.cwnd = 3, 1, 13
    assert replay(algorithm("areno"), [init, ack]) == []
    ack.after.cwnd = 12
    assert replay(algorithm("areno"), [init, ack]) == [
        "event 1, ACK: the kernel decided (12, 1000, 0, 0), areno here (13, 1000, 0, 0)"
    ]


@pytest.mark.alone
@pytest.mark.lab
@no_struct_ops
def test_the_windows_agree_while_the_inputs_do(
    in_lab: Callable[..., str], as_bpf: Callable[[str], list[Record]], tmp_path: Path
) -> None:
    """Slow start decides by what was acked alone, so the kernels' different clocks do not matter to it."""

    def slow_start(records: list[Record]) -> list[tuple[tuple[int, ...], int]]:
        """The input and the state of each ACK's event, and the window after it."""
        until_loss = takewhile(lambda record: record.operation != Operation.LOSS, records)
        return [
            ((one.event.acked, one.event.limited, one.before.cwnd, one.before.ssthresh), one.after.cwnd)
            for one in until_loss
            if one.operation == Operation.ACK
        ]

    there = slow_start(built_in(in_lab, "areno", tmp_path / "lab"))
    here = slow_start(as_bpf("areno"))
    assert len(dict(there)) == len(set(there)), "the same inputs, another window"
    assert len(dict(here)) == len(set(here)), "the same inputs, another window"
    common = dict(there).keys() & dict(here).keys()
    print(f"{len(common)} inputs are common to {len(there)} ACKs in the lab and {len(here)} of the running kernel")
    assert len(common) >= 10
    assert {one: dict(there)[one] for one in common} == {one: dict(here)[one] for one in common}
