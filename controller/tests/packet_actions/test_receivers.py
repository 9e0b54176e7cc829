# SPDX-License-Identifier: Apache-2.0
"""A receiver that did not drop what was corrupted makes a point invalid; packets that left twice came once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from testctl.metrics.core.passages import data_passages
from testctl.metrics.core.view import view
from testctl.packet_actions import check_fates

from controller.tests.packet_actions.test_check import Happen, both, records, to, to_rows, twice


@pytest.mark.parametrize(
    ("asked", "happen", "count"),
    [
        ("corrupt data 3 of bulk", to("corrupt", 3), 1),
        ("corrupt header data 3-4 of bulk", to("corrupt header", 3, 4), 2),
        ("trim data 3 of bulk; corrupt data 4 of bulk", both(to("trim", 3), to("corrupt", 4)), 2),
    ],
)
def test_what_was_corrupted_must_be_dropped_by_the_receiver(
    tmp_path: Path, asked: str, happen: Happen, count: int
) -> None:
    found = records(tmp_path, asked, happen)
    found.counters["receiver"] = {"snmp": {"Tcp.InCsumErrors": count}}
    assert check_fates(found)[1] == []
    found.counters["receiver"]["snmp"]["Tcp.InCsumErrors"] = count - 1
    assert check_fates(found)[1] == [
        f"receiver: its TCP dropped {count - 1} packets for their checksum (Tcp.InCsumErrors); {count} that were "
        "corrupted or trimmed were sent to it"
    ]


def test_a_receiver_without_counters_is_believed(tmp_path: Path) -> None:
    assert check_fates(records(tmp_path, "corrupt data 3 of bulk", to("corrupt", 3)))[1] == []


def test_a_duplicated_packet_came_once(tmp_path: Path) -> None:
    found = records(tmp_path, "duplicate data 2-3 of bulk", twice(2, 3))
    (way,) = data_passages(view(found, "bulk"))
    assert (way.came, len(way.rows)) == (11, 13)


def test_a_packet_that_was_kept_stands_at_its_arrival(tmp_path: Path) -> None:
    """Its record is written behind that of the next one."""

    def happen(told: dict[str, np.ndarray]) -> None:
        to("swap", 2)(told)
        (row,), (after,) = to_rows(told, 2), to_rows(told, 3)
        order = np.arange(len(told["flow"]))
        order = np.insert(np.delete(order, row), after, row)
        for name, column in told.items():
            told[name] = column[order]

    found = records(tmp_path, "swap data 2 of bulk", happen)
    assert check_fates(found)[1] == []
    (way,) = data_passages(view(found, "bulk"))
    assert way.rows["ordinal"].tolist() == list(range(1, 12))
    assert way.rows["retrans"].tolist() == [number == 5 for number in range(1, 12)]
