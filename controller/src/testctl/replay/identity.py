# SPDX-License-Identifier: Apache-2.0
"""Compares a replay with its point by digest, and finds the first record that differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from testctl.compare.packet import FirstDifference, difference_of
from testctl.records import Records
from testctl.records.digest import digest_of
from testctl.records.schema import NAMES


@dataclass(frozen=True)
class Identity:
    """What was compared, and the outcome.

    compared  table -> number of rows of the run's point
    left_out  hosts and switches whose packets were left out: only the replay recorded them
    digests   of the run's point, and of the same tables of the replay
    """

    compared: dict[str, int]
    left_out: tuple[str, ...]
    digests: tuple[str, str]
    difference: FirstDifference | None

    @property
    def same(self) -> bool:
        return self.digests[0] == self.digests[1]

    def words(self) -> str:
        text = ", ".join(f"{rows} rows of {table}" for table, rows in self.compared.items())
        return text + (f" (not the packets at {' and '.join(self.left_out)})" if self.left_out else "")


def identity(before: Records, digest: str, after: Records) -> Identity:
    """Compare the records that the point has; additional ones of the replay are left out.

    digest: the point's, as the run keeps it
    """
    there = _places(before.packets)
    more = tuple(sorted(_places(after.packets) - there)) if there else ()
    packets = _at(after.packets, there, ["where", "flow"]) if more else after.packets
    tables = {"packets": (before.packets, packets), "tcp_info": (before.tcp_info, after.tcp_info)}
    traced = None
    if before.tcp_events is not None and after.tcp_events is not None:
        hosts = _places(before.tcp_events)
        traced = _at(after.tcp_events, hosts, ["where"]) if _places(after.tcp_events) - hosts else after.tcp_events
        tables["tcp_events"] = (before.tcp_events, traced)
    if before.requests is not None and after.requests is not None:
        tables["requests"] = (before.requests, after.requests)
    again = digest_of(packets, after.tcp_info, traced, after.requests)
    difference = None
    if again != digest:
        differences = (difference_of(name.removesuffix("s"), *pair) for name, pair in tables.items())
        difference = next((difference for difference in differences if difference is not None), None)
    return Identity({name: pair[0].num_rows for name, pair in tables.items()}, more, (digest, again), difference)


def _places(packets: pa.Table) -> set[str]:
    """The hosts and switches that recorded packets."""
    return set(packets.column("where").cast(pa.string()).unique().to_pylist())


def _at(records: pa.Table, places: set[str], named: Sequence[str]) -> pa.Table:
    """The records of these places, as if there were no others; named: columns of names to be encoded again."""
    where = records.column("where").cast(pa.string())
    kept = records.filter(pc.is_in(where, pa.array(sorted(places))))
    for name in named:
        index = kept.column_names.index(name)
        again = kept.column(name).cast(pa.string()).combine_chunks().dictionary_encode().cast(NAMES)
        kept = kept.set_column(index, name, again)
    return kept.combine_chunks()
