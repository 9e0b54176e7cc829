# SPDX-License-Identifier: Apache-2.0
"""Decodes the TCP packets of a capture, column by column.

Records are taken in blocks whose headers fit the processor's cache; within a block, packets of
the same layout (Ethernet, 802.1Q, IPv4 or IPv6) are decoded together with constant offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from testctl.records.options import TcpOptions, join_sacks, walk_options
from testctl.records.pcap import RECORD_HEADER, Capture, check_headers
from testctl.records.schema import Array, Bools, Ints

_WIDTH = RECORD_HEADER + 144  # 14 + 2 * 4 + 60 + 60, rounded up
_BLOCK = 1 << 14
_VLANS = (0x8100, 0x88A8)
_TCP = 6


@dataclass(frozen=True)
class Segments:
    """TCP packets of one capture in file order; all arrays have the same length.

    src and dst are indices of the known addresses (-1: another); seq, ack: as on the wire.
    headers: bytes from Ethernet to TCP options.  sack_row, sack_edges: (n,), (n, 8), only the
    packets that have SACK blocks; an edge is -1 where there is no block.
    """

    time_ns: Ints
    src: Array
    dst: Array
    sport: Array
    dport: Array
    seq: Array
    ack: Array
    length: Array
    headers: Array
    flags: Array
    ecn: Array
    window: Array
    tsval: Ints
    tsecr: Ints
    wscale: Array
    sack_row: Ints
    sack_edges: Ints
    ignored: int = 0


_ARRAYS = tuple(f.name for f in fields(Segments) if f.name != "ignored")


def decode(capture: Capture, addresses: Mapping[bytes, int]) -> Segments:
    """Every TCP packet of a capture; anything else is counted in `ignored`.

    addresses: packed IPv4 or IPv6 address -> index.  IP fragments after the first, IPv6
    extension headers and packets cut before the end of the fixed TCP header are ignored.
    Raises RecordsError, with the offset, for a damaged record.
    """
    windows = np.lib.stride_tricks.sliding_window_view(capture.data, _WIDTH)
    parts: list[dict[str, Array]] = []
    for first in range(0, len(capture.offsets), _BLOCK):
        block = windows[capture.offsets[first : first + _BLOCK]]
        parts.append(_decode_block(block, first, capture, addresses))
    if not parts:
        parts.append(_decode_block(np.empty((0, _WIDTH), np.uint8), 0, capture, addresses))
    at = np.cumsum([0] + [len(part["time_ns"]) for part in parts])
    for part, start in zip(parts, at, strict=False):
        part["sack_row"] = part["sack_row"] + start
    columns = {name: np.concatenate([part[name] for part in parts]) for name in _ARRAYS}
    return Segments(**columns, ignored=len(capture.offsets) - len(columns["time_ns"]))


def _be(rows: Array, at: int, size: int) -> Array:
    """A big-endian unsigned field of every row."""
    return np.asarray(rows[:, at : at + size].view(f">u{size}")[:, 0].astype(f"u{size}"))


def _decode_block(rows: Array, first: int, capture: Capture, addresses: Mapping[bytes, int]) -> dict[str, Array]:
    order = ">u4" if capture.big_endian else "<u4"
    head = rows[:, :RECORD_HEADER].view(order).astype(np.int64)
    check_headers(capture, first, head)
    time_ns = head[:, 0] * 10**9 + head[:, 1] * capture.fraction_ns
    frames = rows[:, RECORD_HEADER:]
    groups = []
    for chosen, ip_at, version, ip_size in _layouts(frames, head[:, 2]):
        part = _decode_tcp(frames[chosen], head[chosen, 2], head[chosen, 3], ip_at, version, ip_size, addresses)
        part["row"] = np.flatnonzero(chosen)[part["row"]]
        part["time_ns"] = time_ns[part["row"]]
        groups.append(part)
    if not groups:
        empty = _decode_tcp(frames[:0], head[:0, 2], head[:0, 3], 14, 4, 20, addresses)
        empty["time_ns"] = time_ns[:0]
        groups.append(empty)
    if len(groups) == 1:
        return groups[0]
    starts = np.cumsum([0] + [len(group["row"]) for group in groups])
    for group, start in zip(groups, starts, strict=False):
        group["sack_row"] = group["sack_row"] + start
    merged = {name: np.concatenate([group[name] for group in groups]) for name in groups[0]}
    in_file = np.argsort(merged["row"], kind="stable")
    rank = np.empty_like(in_file)
    rank[in_file] = np.arange(len(in_file))
    for name, column in merged.items():
        if not name.startswith("sack"):
            merged[name] = column[in_file]
    merged["sack_row"], merged["sack_edges"] = join_sacks(rank[merged["sack_row"]], merged["sack_edges"])
    return merged


def _layouts(frames: Array, captured: Ints) -> list[tuple[Bools, int, int, int]]:
    """(rows, offset of IP, IP version, bytes of IP header) of every layout that has TCP."""
    found = []
    kind = _be(frames, 12, 2)
    rest = np.ones(len(frames), np.bool_)
    for ip_at in (14, 18, 22):
        for version, ethertype in ((4, 0x0800), (6, 0x86DD)):
            mine = rest & (kind == ethertype) & (captured >= ip_at + 20)
            if not mine.any():
                continue
            if version == 6:
                mine &= frames[:, ip_at + 6] == _TCP
                found.append((mine, ip_at, 6, 40))
                continue
            mine &= (frames[:, ip_at + 9] == _TCP) & (_be(frames, ip_at + 6, 2) & 0x1FFF == 0)
            first = frames[:, ip_at]
            for size in range(5, 16):
                sized = mine & (first == 0x40 | size)
                if sized.any():
                    found.append((sized, ip_at, 4, 4 * size))
        rest &= np.isin(kind, _VLANS)
        if not rest.any():
            break
        kind = _be(frames, ip_at + 2, 2)
    return found


def _decode_tcp(
    frames: Array,
    captured: Ints,
    original: Ints,
    ip_at: int,
    version: int,
    ip_size: int,
    addresses: Mapping[bytes, int],
) -> dict[str, Array]:
    """The columns of packets of one layout; `row` says which of `frames` they are."""
    at = ip_at + ip_size
    data_at = frames[:, at + 12] >> 4
    good = (captured >= at + 20) & (data_at >= 5)
    row = np.flatnonzero(good)
    if len(row) < len(frames):
        frames, captured, original, data_at = frames[row], captured[row], original[row], data_at[row]
    tcp_size = data_at.astype(np.int32) * 4
    if version == 4:
        total = _be(frames, ip_at + 2, 2).astype(np.int32)
        ecn, addresses_at, size = frames[:, ip_at + 1] & 3, ip_at + 12, 4
    else:
        total = _be(frames, ip_at + 4, 2).astype(np.int32)
        total[total > 0] += 40
        ecn, addresses_at, size = (frames[:, ip_at + 1] >> 4) & 3, ip_at + 8, 16
    total = np.where(total == 0, (original - ip_at).astype(np.int32), total)  # longer than 16 bits can say
    options: TcpOptions = walk_options(frames, at + 20, np.minimum(at + tcp_size, captured), _be(frames, at + 13, 1))
    return {
        "row": row,
        "src": _known(frames, addresses_at, size, addresses),
        "dst": _known(frames, addresses_at + size, size, addresses),
        "sport": _be(frames, at, 2),
        "dport": _be(frames, at + 2, 2),
        "seq": _be(frames, at + 4, 4),
        "ack": _be(frames, at + 8, 4),
        "length": np.maximum(total - ip_size - tcp_size, 0),
        "headers": tcp_size + at,
        "flags": _be(frames, at + 13, 1),
        "ecn": ecn.astype(np.uint8),
        "window": _be(frames, at + 14, 2),
        "tsval": options.tsval,
        "tsecr": options.tsecr,
        "wscale": options.wscale,
        "sack_row": options.sack_row,
        "sack_edges": options.sack_edges,
    }


def _known(frames: Array, at: int, size: int, addresses: Mapping[bytes, int]) -> Array:
    """The index of each row's address, -1 for one that is not known."""
    index = np.full(len(frames), -1, np.int16)
    words = [_be(frames, at + k, 4) for k in range(0, size, 4)]
    for address, number in addresses.items():
        if len(address) == size:
            same = words[0] == int.from_bytes(address[:4])
            for k, word in enumerate(words[1:], 1):
                same = same & (word == int.from_bytes(address[4 * k : 4 * k + 4]))
            index[same] = number
    return index
