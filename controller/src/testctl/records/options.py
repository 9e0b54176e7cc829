# SPDX-License-Identifier: Apache-2.0
"""Walks TCP options of many packets at once: timestamps, SACK blocks, window scale.

Packets whose options are no-op, no-op, timestamp and nothing else (nearly all) are taken in one
step; the others advance together, one option a step.  Sources: RFC 9293 3.1, RFC 7323, RFC 2018.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testctl.records.schema import SYN, Array, Ints

_END, _NOP, _WSCALE, _SACK, _TIMESTAMP = 0, 1, 3, 5, 8
_BLOCKS = 4


class TcpOptions(NamedTuple):
    """tsval, tsecr: int64, -1 where absent; wscale: int8, -1 where absent (only SYNs have it);
    sack_row: the rows with SACK blocks, ascending; sack_edges: (n, 8) int64 as on the wire, -1 where absent."""

    tsval: Ints
    tsecr: Ints
    wscale: Array
    sack_row: Ints
    sack_edges: Ints


def walk_options(frames: Array, start: int, end: Ints, flags: Array) -> TcpOptions:
    """Options of `frames` (n, bytes) that begin at column `start` and end before `end` (n).

    An option that is cut or has a length that can't be ends the walk of its packet.
    """
    count = len(frames)
    tsval, tsecr = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    wscale = np.full(count, -1, np.int8)
    head = frames[:, start : start + 4].view(">u4")[:, 0]
    usual = (head == 0x0101080A) & (end == start + 12)
    if usual.all():
        chosen: slice | Ints = slice(None)
        rest = np.empty(0, np.int64)
    else:
        chosen = np.flatnonzero(usual)
        rest = np.flatnonzero(~usual & (end > start))
    stamps = frames[chosen, start + 4 : start + 12].view(">u4").astype(np.int64)
    tsval[chosen], tsecr[chosen] = stamps[:, 0], stamps[:, 1]

    sack_rows: list[Ints] = []
    sack_edges: list[Ints] = []
    at = np.full(len(rest), start, np.int64)
    stop = np.asarray(end)[rest].astype(np.int64)
    while len(rest):
        kind = frames[rest, at]
        simple = kind == _NOP
        size = np.where(simple, 1, frames[rest, at + 1]).astype(np.int64)
        going = (kind != _END) & (simple | (size >= 2)) & (at + size <= stop)
        rest, at, stop, kind, size = rest[going], at[going], stop[going], kind[going], size[going]
        stamped = (kind == _TIMESTAMP) & (size == 10)
        tsval[rest[stamped]] = _word(frames, rest[stamped], at[stamped] + 2)
        tsecr[rest[stamped]] = _word(frames, rest[stamped], at[stamped] + 6)
        scaled = (kind == _WSCALE) & (size == 3) & (flags[rest] & SYN > 0)
        wscale[rest[scaled]] = np.minimum(frames[rest[scaled], at[scaled] + 2], 14)
        blocks = (kind == _SACK) & (size >= 10)
        if blocks.any():
            sack_rows.append(rest[blocks])
            sack_edges.append(_sacks(frames, rest[blocks], at[blocks] + 2, (size[blocks] - 2) // 8))
        at = at + size
        more = at < stop
        rest, at, stop = rest[more], at[more], stop[more]
    if not sack_rows:
        return TcpOptions(tsval, tsecr, wscale, np.empty(0, np.int64), np.empty((0, 2 * _BLOCKS), np.int64))
    return TcpOptions(tsval, tsecr, wscale, *join_sacks(np.concatenate(sack_rows), np.concatenate(sack_edges)))


def join_sacks(rows: Ints, edges: Ints) -> tuple[Ints, Ints]:
    """SACK blocks sorted by row."""
    order = np.argsort(rows, kind="stable")
    return rows[order], edges[order]


def _word(frames: Array, rows: Ints, at: Ints) -> Ints:
    return np.asarray(frames[rows[:, None], at[:, None] + np.arange(4)].view(">u4")[:, 0].astype(np.int64))


def _sacks(frames: Array, rows: Ints, at: Ints, blocks: Ints) -> Ints:
    edges = np.full((len(rows), 2 * _BLOCKS), -1, np.int64)
    for edge in range(2 * _BLOCKS):
        there = blocks > edge // 2
        edges[there, edge] = _word(frames, rows[there], at[there] + 4 * edge)
    return edges
