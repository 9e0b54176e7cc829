# SPDX-License-Identifier: Apache-2.0
"""Walks over packets in C (walks.h).

Each reads its columns once, and writes what it finds at once.  The functions of Walks take numpy's arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, c_int64, c_void_p
from functools import cache
from typing import Any

import numpy as np

from testctl.records.native import loaded
from testctl.records.schema import Array, Ints

_Fields = dict[str, type[np.generic] | None]
"""A structure of walks.h in its order: the type of a column, None for a number."""

_CAPTURE: _Fields = {
    **{"data_row": np.int32, "data_ns": np.int64, "seq": np.int64, "length": np.int32, "fin": np.bool_},
    **{"segs": np.int16, "retrans": np.bool_, "data": None},
    **{"ack_row": np.int32, "ack_ns": np.int64, "ack": np.int64, "ack_length": np.int32, "acks": None},
    **{"sack": np.int64, "sack_top": np.int64, "sacks": None, "una": None, "nxt": None},
}
TRACE: dict[str, type[np.generic]] = {
    **{"row": np.int32, "time_ns": np.int64, "is_ack": np.bool_, "seq": np.int64, "end": np.int64},
    **{"payload": np.int32, "segs": np.int32, "again": np.bool_, "number": np.int64, "una": np.int64},
    **{"nxt": np.int64, "plain": np.bool_, "at": np.int32, "top": np.int64},
}
_MATCHING: _Fields = {
    **{"end": np.int64, "time_ns": np.int64, "departures": None},
    **{"into_start": np.int64, "into_ends": np.int64, "by_end": np.int64, "into_ns": np.int64, "arrivals": None},
    "arrival": np.int32,
}
_ROUND_TRIPS: _Fields = {
    **{"row": np.int32, "start": np.int64, "end": np.int64, "once": np.bool_, "packets": None, "sent_ns": np.int64},
    **{"highest": np.int64, "position": np.int64, "ack_ns": np.int64, "acks": None, "again": np.int64, "agains": None},
    **{"back_ns": np.int64, "rtt_ns": np.int64, "conn": np.int16},
}


@cache
def walks() -> Walks:
    """Raises TestbedError where the library is missing."""
    return Walks(loaded())


class Walks:
    """The library's functions."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        for name in ("bins", "late", "covered", "latencies", "round_trips"):
            getattr(self._library, f"walks_{name}").restype = c_int64

    def trace(self, count: int, **capture: Array | int) -> dict[str, Array]:
        """The columns TRACE of `count` events of a connection; capture: struct capture, their acks and data."""
        columns = {name: np.empty(count, kind) for name, kind in TRACE.items()}
        self._library.walks_trace(*_pointers(_filled(_CAPTURE, capture), _filled(TRACE, columns)))
        return columns

    def covering(self, begins: Ints, ends: Ints, byte: Ints) -> Array:
        """How many intervals, by their ascending begins and ends, cover each byte."""
        covering = np.empty(len(byte), np.int32)
        self._library.walks_covering(*_ints(begins, ends), _n(len(begins)), *_ints(byte), _n(len(byte)), _at(covering))
        return covering

    def match(self, departures: tuple[Ints, Ints], arrivals: tuple[Ints, Ints, Ints], by_end: Ints | None) -> Array:
        """The arrival of each departure (end, time_ns), -1 for none.

        arrivals: (start, ends ascending, time_ns); by_end: the arrivals by their ends, None when they are so
        """
        (end, time_ns), (start, ends, into_ns) = departures, arrivals
        arrival = np.empty(len(end), np.int32)
        given: dict[str, Any] = {"end": end, "time_ns": time_ns, "into_start": start, "into_ends": ends}
        given |= {"into_ns": into_ns, "by_end": by_end, "arrival": arrival}
        given |= {"departures": len(end), "arrivals": len(start)}
        self._library.walks_match(*_pointers(_filled(_MATCHING, given)))
        return arrival

    def latencies(
        self, row: Array, arrival: Array, sent_ns: Ints, arrived_ns: Ints, offset_ns: int
    ) -> tuple[Ints, Ints]:
        """(departure, latency) of the packets that arrived, in their order."""
        rows, into = (np.ascontiguousarray(column, np.int32) for column in (row, arrival))
        left, latency = np.empty(len(row), np.int64), np.empty(len(row), np.int64)
        count = self._library.walks_latencies(
            _at(rows), _at(into), _n(len(row)), *_ints(sent_ns, arrived_ns), _n(offset_ns), _at(left), _at(latency)
        )
        return left[:count], latency[:count]

    def round_trips(self, **given: Array | int | None) -> tuple[Ints, Ints, Array]:
        """(when the ACK came, the round trip, the connection) of each sample; given: struct round_trips."""
        most: Any = given["packets"]
        columns = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int16)
        given |= dict(zip(("back_ns", "rtt_ns", "conn"), columns, strict=True))
        count = self._library.walks_round_trips(*_pointers(_filled(_ROUND_TRIPS, given)))
        back, rtt, conn = columns
        return back[:count], rtt[:count], conn[:count]

    def bins(self, time_ns: Ints, amount: Array, start_ns: int, bin_ns: int) -> tuple[Ints, Ints]:
        """(number of each bin that holds something, ascending; sum of `amount` in it).

        time_ns ascending; bin k is [start_ns + k * bin_ns, start_ns + (k + 1) * bin_ns).
        """
        amounts = np.ascontiguousarray(amount, np.int32 if amount.dtype == np.int32 else np.int64)
        number, total = np.empty(len(time_ns), np.int64), np.empty(len(time_ns), np.int64)
        count = self._library.walks_bins(
            *_ints(time_ns), _at(amounts), amounts.itemsize, _n(len(time_ns)), _n(start_ns), _n(bin_ns),
            _at(number), _at(total),
        )  # fmt: skip
        return number[:count], total[:count]

    def covered(self, start: Ints, end: Ints) -> int:
        """Bytes of intervals that are not empty, each counted once; at least one interval."""
        late = np.empty(len(start), np.int64)
        late = late[: self._library.walks_late(*_ints(start), _n(len(start)), _at(late))]
        order = late[np.argsort(start[late], kind="stable")]
        late_start, late_end = start[order], end[order]
        return int(
            self._library.walks_covered(
                *_ints(start, end), _n(len(start)), *_ints(late, late_start, late_end), _n(len(late))
            )
        )

    def waits(self, time_ns: Ints, tsval: Ints) -> Ints:
        """How much longer than the least each packet waited in its host, ns."""
        waited = np.empty(len(time_ns), np.int64)
        self._library.walks_waits(*_ints(time_ns, tsval), _n(len(time_ns)), _at(waited))
        return waited


class _Column(c_void_p):
    """A pointer to a column, which lives as long as the pointer."""

    column: Array


def _at(column: Array) -> _Column:
    made = _Column(column.ctypes.data)
    made.column = column
    return made


def _ints(*columns: Ints) -> list[_Column]:
    return [_at(np.ascontiguousarray(column, np.int64)) for column in columns]


def _n(number: int) -> c_int64:
    return c_int64(number)


def _filled(fields: Mapping[str, type[np.generic] | None], given: Mapping[str, Any]) -> Any:
    """A structure with numbers, and pointers to columns, which live as long as it does."""
    kind = _structure(tuple((name, c_int64 if of is None else c_void_p) for name, of in fields.items()))
    made, kept = kind(), []
    for name, of in fields.items():
        value = given[name]
        if of is not None and value is not None:
            kept.append(np.ascontiguousarray(value, of))
            value = kept[-1].ctypes.data
        setattr(made, name, value)
    made.kept = kept
    return made


@cache
def _structure(fields: tuple[tuple[str, Any], ...]) -> Any:
    return type("Given", (ctypes.Structure,), {"_fields_": list(fields)})


def _pointers(*structures: Any) -> list[Any]:
    return [POINTER(type(structure))(structure) for structure in structures]
