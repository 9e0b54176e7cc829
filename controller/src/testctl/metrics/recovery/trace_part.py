# SPDX-License-Identifier: Apache-2.0
"""Some events of a connection on end, one column for each of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from testctl.metrics.core.native import if_compiled
from testctl.records.schema import Array, Bools, Ints
from testctl.records.search import search


@dataclass(frozen=True)
class Part:
    """Events first <= event < first + len of a trace, in the order of the capture; arrays have one entry an event.

    row: of the packets table; is_ack: an ACK that came, else data (or a FIN) that left;
    seq, end: of data, the byte behind its last (and behind a FIN); payload, segs: bytes and packets on
    the wire of data, 0 of ACKs; again: data that had left before; number: of an ACK;
    una, nxt: snd.una and snd.nxt after the event;
    plain: of an ACK, it carried no payload; at: its entry in the trace's `blocks`; top: the highest byte that an
    ACK acknowledged or SACKed.
    """

    first: int
    row: Array
    time_ns: Ints
    is_ack: Bools
    seq: Ints
    end: Ints
    payload: Array
    segs: Array
    again: Bools
    number: Ints
    una: Ints
    nxt: Ints
    plain: Bools
    at: Array
    top: Ints

    def __len__(self) -> int:
        return len(self.row)

    def part(self, low: int, high: int) -> Part:
        """Its events low <= event < high, numbered as in the trace."""
        inside = slice(low - self.first, high - self.first)
        return Part(low, **{name: column[inside] for name, column in vars(self).items() if name != "first"})


def columns_of(given: Mapping[str, Any]) -> dict[str, Array]:
    """The columns of a part; given: struct capture of core/native/walks.h, whose events are all in the part."""
    walks = if_compiled()
    return merged(given) if walks is None else walks.trace(given["data"] + given["acks"], **given)


def merged(given: Mapping[str, Any]) -> dict[str, Array]:
    """columns_of() by numpy."""
    count, answers = given["data"], given["acks"]
    rows = (given["data_row"], given["ack_row"])
    places = [np.arange(len(own)) + search(others, own) for own, others in (rows, rows[::-1])]

    def both(of_data: Array | int, of_acks: Array | int, kind: type[np.generic] = np.int64) -> Array:
        found = np.zeros(count + answers, kind)
        for place, values in zip(places, (of_data, of_acks), strict=True):
            if isinstance(values, np.ndarray) or values:
                found[place] = values
        return found

    is_ack = both(0, 1, np.bool_)
    end, number = both(given["seq"] + given["length"] + given["fin"], 0), both(0, given["ack"])
    least = np.iinfo(np.int64).min
    entry, top = np.zeros(answers, np.int32), np.maximum(given["ack"], -1)
    entry[given["sack"]] = np.arange(1, given["sacks"] + 1)
    top[given["sack"]] = np.maximum(given["ack"][given["sack"]], given["sack_top"])
    return {
        "row": both(*rows, np.int32),
        "time_ns": both(given["data_ns"], given["ack_ns"]),
        "is_ack": is_ack,
        "seq": both(given["seq"], 0),
        "end": end,
        "payload": both(given["length"], 0, np.int32),
        "segs": both(np.where(given["length"] > 0, given["segs"], 0), 0, np.int32),
        "again": both(given["retrans"], 0, np.bool_),
        "number": number,
        "una": np.maximum(np.maximum.accumulate(np.where(is_ack, number, least)), given["una"]),
        "nxt": np.maximum(np.maximum.accumulate(np.where(is_ack, least, end)), given["nxt"]),
        "plain": both(0, given["ack_length"] == 0, np.bool_),
        "at": both(0, entry, np.int32),
        "top": both(0, top),
    }
