# SPDX-License-Identifier: Apache-2.0
"""Two files of the same connections, one captured at each end: which connections, which end, and the clocks.

Clocks: the least one-way delays of both ways are taken to be alike, which gives the offset; the true one is within half
of their sum, the shortest round trip (RFC 5905, 8, has the same bound).  A drift is seen where the least delays change
along a line, one way's up as the other's go down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testctl.analyse.native.structures import NOT_KNOWN
from testctl.analyse.walk import Clock, Scanned
from testctl.records import Records
from testctl.records.errors import RecordsError
from testctl.records.schema import Array, Bools, Ints, codes_of, numbers_of

_WINDOWS = 10
_MOST = 2_000_000
"""Packets of each file whose delays are compared; of more, a part chosen by their content."""
_LEAST_DRIFT_NS = 10_000
"""A drift that moves a clock by less over a capture is not seen."""


@dataclass(frozen=True)
class Common:
    """Connections of both files: first, second are their numbers; client: the client's end in each."""

    first: Ints
    second: Ints
    client: tuple[Ints, Ints]


@dataclass(frozen=True)
class Delays:
    """Of packets that both files have: when they left, how long they took by the two clocks; each way an array."""

    sent_ns: tuple[Ints, Ints]
    took_ns: tuple[Ints, Ints]


def common_of(first: Scanned, second: Scanned, client: Ints, rows: Ints) -> Common:
    """Of these connections of the first file those that the second has too: by addresses, ports and initial numbers,
    or, where something changed the addresses between the two, by both initial numbers.

    Raises RecordsError without any.
    """
    by_ends, by_numbers = _keyed(second.connections)
    pairs: list[tuple[int, int, bool]] = []
    taken: set[int] = set()
    for index in rows.tolist():
        ours = first.connections[index]
        low = _low(ours)
        match: int = next((other for other in by_ends.get(_ends(ours), ()) if other not in taken
                      and _same_numbers(ours, second.connections[other])), -1)  # fmt: skip
        if match >= 0:
            turned = low != _low(second.connections[match])
        elif ours["syn_seen"].all() and (other := by_numbers.get(_numbers(ours), -1)) >= 0 and other not in taken:
            match, turned = int(other), bool(ours["isn"][0] != second.connections[other]["isn"][0])
        else:
            continue
        taken.add(match)
        pairs.append((index, match, turned))
    if not pairs:
        raise RecordsError(
            second.path, f"want a connection that is in {first.path} too, to compare two ends; got none of the same "
            "addresses and ports"
        )  # fmt: skip
    numbers, others, swapped = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    opener = first.connections["opener"][numbers]
    opener_there = second.connections["opener"][others].astype(np.int64)
    there_alone = (opener == NOT_KNOWN) & (opener_there != NOT_KNOWN)
    known = np.where(there_alone, opener_there ^ swapped, client[numbers])
    return Common(numbers, others, (known, known ^ swapped))


def first_is_client(first: Array, second: Array) -> Bools | None:
    """For each pair of connections whether the first file is the client's; None: not known of any.

    The answer to the SYN takes longer at the client.  Where there is no handshake, as most other pairs.
    """
    known = (first["synack_ns"] >= 0) & (second["synack_ns"] >= 0) & (first["syn_ns"] >= 0) & (second["syn_ns"] >= 0)
    longer = (first["synack_ns"] - first["syn_ns"]) - (second["synack_ns"] - second["syn_ns"])
    known &= longer != 0
    if not known.any():
        return None
    most = bool((longer[known] > 0).mean() >= 0.5)
    return np.asarray(np.where(known, longer > 0, most))


def rough_offset(client: Array, server: Array) -> int:
    """The server's clock less the client's, by the handshakes of pairs of connections, else by their first packets."""
    known = (client["synack_ns"] >= 0) & (server["synack_ns"] >= 0) & (client["syn_ns"] >= 0) & (server["syn_ns"] >= 0)
    if not known.any():
        return int(np.median(server["first_ns"] - client["first_ns"]))
    there = server["syn_ns"][known] - client["syn_ns"][known]
    back = client["synack_ns"][known] - server["synack_ns"][known]
    best = int(np.argmin(there + back))
    return int((there[best] - back[best]) // 2)


def delays_of(records: Records, client_file: Array) -> Delays:
    """Of packets that are in both files once and alike.

    client_file: whether a row is of the client's file
    """
    table = records.packets
    direction = numbers_of(table, "direction")
    key = codes_of(table, "flow")[0].astype(np.uint64)
    for name in ("conn", "direction", "seq", "length", "ack", "flags", "tsval", "tsecr", "window"):
        key = key * np.uint64(0x9E3779B97F4A7C15) + numbers_of(table, name).astype(np.uint64)
        key ^= key >> np.uint64(29)
    part = np.uint64(max(len(key) // (2 * _MOST), 1))
    time_ns = numbers_of(table, "time_ns")
    sent, took = [], []
    for way in (0, 1):
        rows = np.flatnonzero((direction == way) & (key % part == 0))
        sides = [rows[client_file[rows] == (way == 0)], rows[client_file[rows] != (way == 0)]]
        left_rows, came_rows = (side[_once(key[side])] for side in sides)
        _, at, to = np.intersect1d(key[left_rows], key[came_rows], assume_unique=True, return_indices=True)
        left, came = time_ns[left_rows[at]], time_ns[came_rows[to]]
        order = np.argsort(left, kind="stable")
        sent.append(left[order])
        took.append((came - left)[order])
    return Delays((sent[0], sent[1]), (took[0], took[1]))


def clock_of(delays: Delays) -> tuple[Clock, int] | None:
    """(the server's clock against the client's, the most by which it can be wrong); None without packets both ways.

    Its from_ns is a time of the records.
    """
    if not all(len(took) for took in delays.took_ns):
        return None
    there, back = delays.took_ns
    begin = min(int(sent[0]) for sent in delays.sent_ns)
    slope = _drift(delays, begin)
    if slope:
        there = there - (slope * (delays.sent_ns[0] - begin)).astype(np.int64)
        back = back + (slope * (delays.sent_ns[1] - begin)).astype(np.int64)
    least = int(there.min()), int(back.min())
    return Clock((least[0] - least[1]) // 2, round(slope * 1e9), begin), (sum(least) + 1) // 2


def _drift(delays: Delays, begin: int) -> float:
    """The server's clock's drift against the client's; 0.0 where none is seen."""
    end = max(int(sent[-1]) for sent in delays.sent_ns)
    edges = np.linspace(begin, end + 1, _WINDOWS + 1).astype(np.int64)
    slopes = []
    for sent, took, sign in zip(delays.sent_ns, delays.took_ns, (1, -1), strict=True):
        cuts = np.searchsorted(sent, edges)
        some = np.flatnonzero(np.diff(cuts) > 0)
        if len(some) < _WINDOWS // 2:
            return 0.0
        at = [cuts[window] + int(np.argmin(took[cuts[window] : cuts[window + 1]])) for window in some.tolist()]
        time, least = sent[at].astype(np.float64), sign * took[at].astype(np.float64)
        pairs = [(least[j] - least[i]) / (time[j] - time[i]) for i in range(len(at)) for j in range(i + 1, len(at))
                 if time[j] > time[i]]  # fmt: skip
        slopes.append(float(np.median(pairs)) if pairs else 0.0)
    mean = sum(slopes) / 2
    alike = abs(slopes[0] - slopes[1]) <= 0.3 * abs(mean)
    return mean if alike and abs(mean) * (end - begin) >= _LEAST_DRIFT_NS else 0.0


def _once(key: Array) -> Ints:
    """Places of values that are there once."""
    _, index, count = np.unique(key, return_index=True, return_counts=True)
    return np.asarray(index[count == 1])


def _low(connection: Array) -> int:
    """The end that comes first by address and port."""
    ends = [(bytes(connection["address"][end]), int(connection["port"][end])) for end in (0, 1)]
    return int(ends[1] < ends[0])


def _ends(connection: Array) -> bytes:
    low = _low(connection)
    return b"".join(
        bytes(connection["address"][end]) + int(connection["port"][end]).to_bytes(2, "big") for end in (low, 1 - low)
    )


def _numbers(connection: Array) -> tuple[int, ...]:
    return tuple(sorted(connection["isn"].tolist()))


def _same_numbers(ours: Array, theirs: Array) -> bool:
    low, other = _low(ours), _low(theirs)
    return all(
        ours["isn"][end ^ low] == theirs["isn"][end ^ other]
        for end in (0, 1)
        if ours["syn_seen"][end ^ low] and theirs["syn_seen"][end ^ other]
    )


def _keyed(connections: Array) -> tuple[dict[bytes, list[int]], dict[tuple[int, ...], int]]:
    by_ends: dict[bytes, list[int]] = {}
    by_numbers: dict[tuple[int, ...], int] = {}
    for index, connection in enumerate(connections):
        by_ends.setdefault(_ends(connection), []).append(index)
        if connection["syn_seen"].all():
            by_numbers[_numbers(connection)] = index
    return by_ends, by_numbers
