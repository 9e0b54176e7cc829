# SPDX-License-Identifier: Apache-2.0
"""Stalls and violated rules of a connection, as a viewer shows them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from testctl.curves import Lane
from testctl.metrics import ENDS, stalls_table
from testctl.records import Records
from testctl.results import RunPoint


@dataclass(frozen=True)
class Mark:
    """kind: "stalls" or "violated rules"; start_ns = end_ns for an instant."""

    kind: str
    start_ns: int
    end_ns: int
    name: str
    notes: dict[str, int | str]


def marks(point: RunPoint, records: Records) -> dict[Lane, list[Mark]]:
    """Of each connection, by time, stalls first.  Of a rule violated more often those that the point kept."""
    of: dict[Lane, list[Mark]] = defaultdict(list)
    table = point.stalls()
    table = stalls_table(records) if table is None else table
    for row in table.select(["flow", "conn", "start_ns", "end_ns", "cause", "ended_by", "proof"]).to_pylist():
        notes = {"ended by": ENDS.get(row["ended_by"], row["ended_by"]), "proof": row["proof"]}
        of[row["flow"], row["conn"]].append(Mark("stalls", row["start_ns"], row["end_ns"], row["cause"], notes))
    listed = [(entry, first) for entry in point.violations for first in entry["first"]]
    for entry, first in sorted(listed, key=lambda pair: int(pair[1]["time_ns"])):
        notes = {"host": entry["host"], "what": first["text"], "rows": ", ".join(map(str, first["packets"]))}
        mark = Mark("violated rules", first["time_ns"], first["time_ns"], entry["rule"], notes)
        of[entry["flow"], first["conn"]].append(mark)
    return of
