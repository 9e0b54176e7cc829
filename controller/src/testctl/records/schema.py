# SPDX-License-Identifier: Apache-2.0
"""The one schema of records: packets and tcp_info samples, whatever they came from.

Times are ns relative to T0, the instant a point's traffic time starts.  Sequence and
acknowledgement numbers are relative to the connection's first data byte and never wrap.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from testctl.system import arrow_alone

arrow_alone.load()

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NAMES = pa.dictionary(pa.int16(), pa.string())

SACK_EDGES = tuple(f"sack{n}_{edge}" for n in range(1, 5) for edge in ("start", "end"))
ACCURATE_ECN = {"ae": 0, "accecn_e0": -1, "accecn_ce": -1, "accecn_e1": -1}
"""Columns of Accurate ECN, and the value of a packet that has nothing of it."""
RARE_COLUMNS = {**dict.fromkeys(SACK_EDGES, -1), **ACCURATE_ECN}
"""Columns that have one value in most packets, and this value."""

PACKETS = pa.schema(
    [
        ("time_ns", pa.int64()),  # relative to T0
        ("where", NAMES),  # the entity that captured it
        ("flow", NAMES),
        ("conn", pa.int16()),  # client port - the flow's first client port
        ("direction", pa.int8()),  # 0: from -> to of the flow, 1: the other
        ("seq", pa.int64()),  # first data byte of the direction is 0, the SYN is -1
        ("ack", pa.int64()),  # relative to the other direction; -1 without the ACK flag
        ("length", pa.int32()),  # TCP payload, bytes
        ("segs", pa.int16()),  # packets on the wire that this record stands for
        ("wire_bytes", pa.int32()),  # payload and all headers from Ethernet on, of all segs
        ("flags", pa.uint8()),  # TCP flags byte
        ("ecn", pa.uint8()),  # IP ECN field: 0 none, 1 ECT(1), 2 ECT(0), 3 CE
        ("window", pa.int64()),  # bytes, scaled
        ("tsval", pa.int64()),  # -1: no timestamp option
        ("tsecr", pa.int64()),
        *((edge, pa.int64()) for edge in SACK_EDGES),  # relative like ack; -1: no such block
        # The ninth TCP flag, 0 or 1, and the counters of the AccECN option in bytes of 24 bits, as sent; -1: not there.
        *((name, pa.int64()) for name in ACCURATE_ECN),
        ("retrans", pa.bool_()),  # below the highest byte seen here before
        ("queue_bytes", pa.int32()),  # what it found waiting at the port it leaves by; -1: unknown
        ("fate", pa.uint8()),  # index of FATES
        ("out", pa.bool_()),  # leaving `where` (True) or arriving; a switch's rows are arrivals
        ("left_ns", pa.int64()),  # of a switch's rows: departure, relative to T0; -1: not sent, or unknown
        ("ordinal", pa.int32()),  # of a switch's rows: count among the stream's packets of its kind, from 1; else -1
        ("first_ordinal", pa.int32()),  # likewise among first transmissions of data; 0: not one; -1: unknown
    ]
)

FATES = (
    "none",
    "drop",
    "mark",
    "delay",
    "echo",
    "clear",
    "lose",
    "queue_mark",  # by the port's ECN threshold or AQM
    "buffer_drop",  # by the port's full buffer
    "other_drop",
    "link_drop",  # by the port's link: down, or for packets that are smaller
    "reorder",
    "aqm_drop",  # by the port's active queue management
    "duplicate",  # of both copies
    "corrupt",
    "corrupt header",
    "trim",
    "swap",
)
"""What a switch did to a packet, by the number in `fate`.

A packet that was duplicated has two rows with the same ordinal.  `length` and `wire_bytes` are those on arrival, also
of what was trimmed; one that was swapped departs after the flow's next data packet.
"""

DROPPED = tuple(FATES.index(name) for name in ("drop", "lose", "buffer_drop", "other_drop", "link_drop", "aqm_drop"))
"""Fates of packets that went no further."""

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, AE = (1 << bit for bit in range(9))
"""AE is no bit of `flags` but a column of its own."""
CE = 3

_TCP_INFO_LAYOUT = (
    (1, "state ca_state retransmits probes backoff options"),
    (2, "-"),  # the bit fields
    (
        4,
        "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent last_data_recv "
        "last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering rcv_rtt rcv_space "
        "total_retrans",
    ),
    (8, "pacing_rate max_pacing_rate bytes_acked bytes_received"),
    (4, "segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out"),
    (8, "delivery_rate busy_time rwnd_limited sndbuf_limited"),
    (4, "delivered delivered_ce"),
    (8, "bytes_sent bytes_retrans"),
    (4, "dsack_dups reord_seen rcv_ooopack snd_wnd rcv_wnd rehash"),
    (2, "total_rto total_rto_recoveries"),
    (4, "total_rto_time"),
)
"""struct tcp_info, include/uapi/linux/tcp.h: bytes of each of these fields, in its order."""
_SIZES = [(name, size) for size, names in _TCP_INFO_LAYOUT for name in names.split(" ")]
_ENDS = accumulate(size for _, size in _SIZES)
TCP_INFO_FIELDS = tuple(
    (name, end - size, size) for (name, size), end in zip(_SIZES, _ENDS, strict=True) if name != "-"
)
"""Name, offset and bytes of each number in struct tcp_info."""
TCP_INFO_BITS = (  # name, byte, shift, mask (little-endian bit fields)
    ("snd_wscale", 6, 0, 0xF),
    ("rcv_wscale", 6, 4, 0xF),
    ("delivery_rate_app_limited", 7, 0, 0x1),
    ("fastopen_client_fail", 7, 1, 0x3),
)

TCP_INFO = pa.schema(
    [
        ("time_ns", pa.int64()),
        ("where", NAMES),
        ("flow", NAMES),
        ("conn", pa.int16()),
        *((name, pa.int64()) for name, *_ in TCP_INFO_FIELDS),
        *((name, pa.int64()) for name, *_ in TCP_INFO_BITS),
    ]
)

TCP_EVENT_NAMES = ("ack", "send", "retransmit", "timeout")
"""What happened: `event` of TCP_EVENTS, by the kernel's numbers (enum tcp_event_kind).

ack: an ACK came and was processed; send, retransmit: data left; timeout: the retransmission timer ran out.  A recovery
begins and ends where `state` changes.
"""

TCP_EVENT_SOURCES = ("kernel", "capture")
TCP_STATES = ("open", "disorder", "cwr", "recovery", "loss")
"""By the kernel's numbers, enum tcp_ca_state."""

TCP_LIMITS = ("nothing", "application", "send_buffer", "receiver_window", "cwnd", "pacing")
"""What keeps the sender from sending more after an event, by the kernel's numbers (enum tcp_event_limit).

cwnd: as many packets are in flight as it allows; receiver_window: the next segment does not fit into it; application:
less than a packet is to be sent, and nothing lost; send_buffer: likewise, and the application waits for space in the
send buffer; pacing: TCP's own pacing sends the next segment later; nothing: it leaves in the same turn.  The first that
holds, in this order.
"""

BBR_PHASES = ("startup", "drain", "probe_bw", "probe_rtt")

CC_COLUMNS = {
    "phase": pa.int8(),  # of BBR: index of BBR_PHASES
    "pacing_gain": pa.float64(),  # of BBR, like cwnd_gain and cc_bw_bps
    "cwnd_gain": pa.float64(),
    "cc_bw_bps": pa.int64(),  # the bottleneck's bandwidth, as it estimates it
    "cc_rtt_us": pa.int64(),  # tcpv_rtt of Vegas (its base RTT), Yeah, Illinois (the mean), Westwood, NV
    "cc_min_rtt_us": pa.int64(),  # of BBR, and tcpv_minrtt (of Vegas: of the last round)
    "dctcp_alpha": pa.float64(),  # of DCTCP: the share of marked packets, 0 to 1
    "dctcp_ce": pa.int8(),  # of DCTCP: whether the last packet that came was marked
}
"""A congestion control's own state, as it says it (get_info)."""

SENDER_COLUMNS = {
    "pacing_rate_bps": pa.int64(),  # -1: unlimited, too
    "delivery_rate_bps": pa.int64(),  # of the last sample that the application did not limit
    "limited_by": pa.int8(),  # index of TCP_LIMITS
    **CC_COLUMNS,
}
"""Columns of TCP_EVENTS that only a kernel's trace has; -1 in captures, and in records from before them."""

TCP_EVENTS = pa.schema(
    [
        ("time_ns", pa.int64()),  # relative to T0
        ("where", NAMES),  # the sender
        ("flow", NAMES),
        ("conn", pa.int16()),
        ("event", NAMES),  # of TCP_EVENT_NAMES
        ("snd_una", pa.int64()),  # bytes, relative to the first data byte
        ("snd_nxt", pa.int64()),
        ("cwnd", pa.int64()),  # packets, like ssthresh, pipe and delivered
        ("ssthresh", pa.int64()),
        ("pipe", pa.int64()),  # a kernel's tcp_packets_in_flight(); of a capture RFC 6675's
        ("prior_pipe", pa.int64()),  # before the event
        ("srtt_us", pa.int64()),
        ("state", pa.int8()),  # index of TCP_STATES
        ("delivered", pa.int64()),  # since the connection began, the SYN counted
        ("source", NAMES),  # of TCP_EVENT_SOURCES
        *SENDER_COLUMNS.items(),
    ]
)
"""A sender's TCP at every ACK and every transmission; values after the event, -1 unknown.

Of a kernel: every value is its own; a FIN counts one in snd_una and snd_nxt, ssthresh is 2147483647 before the
first loss, and the time is when TCP handed a packet down, which with pacing is before it leaves.  An ACK when
nothing was in flight is left out.
Of a capture: cwnd is what it must have been at least, the pipe after a transmission (-1 at ACKs), and
ssthresh is unknown; packets are bytes / the largest packet's payload, rounded up.
"""

REQUESTS = pa.schema(
    [
        ("flow", NAMES),
        ("request", pa.int32()),  # its place among the flow's
        ("conn", pa.int16()),
        ("up", pa.int64()),  # bytes from the client to the server
        ("down", pa.int64()),  # bytes then back; 0: no answer
        ("due_ns", pa.int64()),  # when it came, relative to T0
        ("begin_ns", pa.int64()),  # when the client opened its connection for it, or wrote its first byte; -1: never
        ("end_ns", pa.int64()),  # when its last byte was read, at the server or, of an answer, at the client; -1: never
    ]
)
"""What the applications of flows that make requests say of each; times by the clock of the host where it happened."""


def names_column(codes: Array, names: list[str]) -> pa.DictionaryArray:
    """A dictionary column of `codes` into `names` (order kept, so that it is deterministic)."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int16, copy=False)), pa.array(names, pa.string()))


def codes_of(table: pa.Table, column: str) -> tuple[Array, list[str]]:
    """The codes and names of a dictionary column; the inverse of names_column."""
    chunks = table.column(column)
    chunk = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()  # which copies
    if isinstance(chunk, pa.ChunkedArray):
        chunk = chunk.chunk(0) if chunk.num_chunks else names_column(np.empty(0, np.int16), [])
    return np.asarray(chunk.indices), chunk.dictionary.to_pylist()


def numbers_of(table: pa.Table, column: str) -> Array:
    """A column of numbers or booleans as a numpy array (no copy where Arrow allows it)."""
    chunks = table.column(column)
    if not pa.types.is_boolean(chunks.type) or chunks.num_chunks != 1 or chunks.null_count:
        return np.asarray(chunks.to_numpy())
    bits = chunks.chunk(0)  # unpacked in a tenth of the time that Arrow takes
    first, skipped = divmod(bits.offset, 8)
    packed = np.frombuffer(bits.buffers()[1], np.uint8)[first:] if len(bits) else np.empty(0, np.uint8)
    return np.unpackbits(packed, count=skipped + len(bits), bitorder="little")[skipped:].view(np.bool_)


def table_of(schema: pa.Schema, columns: Mapping[str, Any]) -> pa.Table:
    """A table of arrays: numpy's are cast to the schema's types, Arrow's are of them."""
    return pa.table(
        [
            column if isinstance(column := columns[field.name], pa.Array) else pa.array(column).cast(field.type)
            for field in schema
        ],
        schema=schema,
    )


def taken(column: pa.ChunkedArray, index: Ints) -> Array:
    """A column of numbers at ascending rows, piece by piece."""
    ends = np.cumsum([len(piece) for piece in column.chunks])
    parts = np.split(index, np.searchsorted(index, ends[:-1]))
    starts = [0, *ends[:-1].tolist()]
    pieces = zip(column.chunks, parts, starts, strict=True)
    return np.concatenate([piece.to_numpy().take(rows - start) for piece, rows, start in pieces])


def others(column: pa.ChunkedArray, index: Ints, usual: int) -> tuple[Ints, Array]:
    """(which of ascending rows have another number than the usual one, these numbers), piece by piece.

    Pieces without any may be one and the same: it is looked at once.
    """
    places, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    only_usual: dict[tuple[int, int, int], bool] = {}
    ends = np.cumsum([len(piece) for piece in column.chunks])
    cuts = [0, *np.searchsorted(index, ends).tolist()]
    for piece, end, low, high in zip(column.chunks, ends.tolist(), cuts[:-1], cuts[1:], strict=True):
        same = (piece.buffers()[1].address, piece.offset, len(piece))
        if same not in only_usual:
            only_usual[same] = bool((piece.to_numpy() == usual).all())
        if only_usual[same]:
            continue
        numbers = piece.to_numpy().take(index[low:high] - (end - len(piece)))
        there = np.flatnonzero(numbers != usual)
        places.append(there + low)
        values.append(numbers[there])
    return np.concatenate(places), np.concatenate(values)
