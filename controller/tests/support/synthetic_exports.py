# SPDX-License-Identifier: Apache-2.0
"""A small point with losses, on disk as a run has it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testctl.metrics import stalls_table
from testctl.records import Records, load_raw
from testctl.records.schema import ACK, FIN
from testctl.results import PointResult, RunPoint, load_run, write_point
from testctl.rules.judge import violations_of

from controller.tests.support.synthetic import Conversation
from controller.tests.support.synthetic import write_point as write_raw

MSS = 1448


def lossy() -> Conversation:
    """The third of nine packets is lost, and sent again after SACKs; the tenth too, after 300 ms by the timer."""
    talk = Conversation(delay_us=10)
    for n in range(9):
        talk.data(100.001 + n, MSS * n, arrives=n != 2)
    talk.ack(120, 2 * MSS)
    talk.ack(121, 2 * MSS, sacks=(3 * MSS, 9 * MSS))
    talk.data(140, 2 * MSS)
    talk.ack(160, 9 * MSS)
    talk.data(200, 9 * MSS, arrives=False)
    talk.data(300_200, 9 * MSS, flags=ACK | FIN)
    talk.ack(300_220, 10 * MSS + 1)
    return talk


def recorded(place: Path, captures: Mapping[str, Any]) -> Records:
    """Records of captures, of a sender without tail loss probes."""
    return load_raw(write_raw(place, captures, settings={"sender": {"net.ipv4.tcp_early_retrans": 0}}))


def point_of(records: Records, place: Path) -> RunPoint:
    (place / "points").mkdir(parents=True)
    given = {"records": records, "stalls": stalls_table(records), "violations": violations_of(records)}
    write_point(place, PointResult(records.point.to_json(), "pass", **given))
    return load_run(place).points[0]


def loaded(point: RunPoint) -> Records:
    records = point.records()
    assert records is not None
    return records


def written(write: Any, point: RunPoint, flow: str | None = None) -> bytes:
    file = io.BytesIO()
    write(point, loaded(point), file, flow)
    return file.getvalue()
