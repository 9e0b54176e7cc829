# SPDX-License-Identifier: Apache-2.0
"""Where a file was captured: at which ends of its connections, by what the file itself shows.

In order of certainty: the capture says of packets that they came in or went out; the checksums of what leaves a host
are not yet complete where its network card completes them; of the handshake's two answers the one by the capturing host
takes no time.  Of the last two the packets must have the TTL that hosts send with, so that no router was passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from testctl.analyse.native.structures import NOT_KNOWN
from testctl.records.schema import Array, Bools, Ints

At = Literal["client", "server", "between"]
_TTLS = (32, 64, 128, 255)
_TIMES = 4
"""By how much the answer over the network takes longer than the capturing host's own."""
_LEAST_NS = 10_000
"""Less than this tells nothing: hosts of one machine or one switch."""
_OWN_NS = 200_000
"""A host's own answer, the fastest of its handshakes: a capture on the way sees it later."""
_AGREE = 0.8
"""The share of an address's decided connections that must agree."""


@dataclass(frozen=True)
class Ends:
    """Of each connection: client, the end that opened it; here: (n, 2) whether the client, the server captured it.

    why  how that is known, in words; "" where it is not
    """

    client: Ints
    here: Bools
    why: str


def clients(connections: Array) -> Ints:
    """The end that sent the SYN; without one the end with the higher port."""
    port = connections["port"]
    guess = np.where(port[:, 0] >= port[:, 1], 0, 1)
    return np.asarray(np.where(connections["opener"] == NOT_KNOWN, guess, connections["opener"]).astype(np.int64))


def ends_of(connections: Array, at: At | None = None) -> Ends:
    """Where a file's connections were captured; at: what its user says."""
    client = clients(connections)
    here = np.zeros((len(connections), 2), np.bool_)
    if at is not None:
        if at != "between":
            here[:, 0 if at == "client" else 1] = True
        return Ends(client, here, f"--at {at}")
    for evidence, why in (
        (_itself, "a host talks to itself"),
        (_stated, "the capture says which packets came in and which went out"),
        (_partial, "the checksums of one end's packets were not complete"),
        (_handshakes, "one end answered the other's handshake at once"),
    ):
        local, elsewhere = evidence(connections)
        here = _by_address(connections, local, elsewhere)
        if evidence in (_partial, _handshakes):
            here &= np.isin(connections["ttl"], _TTLS)  # another host can answer for an address: a proxy
        if here.any():
            rows = np.arange(len(connections))
            return Ends(client, np.stack([here[rows, client], here[rows, 1 - client]], axis=1), why)
    return Ends(client, here, "")


def addresses(connections: Array) -> Array:
    """(n, 2) of the ends' addresses, as values that compare: 16 bytes and the family."""
    wide = np.zeros((len(connections), 2, 17), np.uint8)
    wide[:, :, :16], wide[:, :, 16] = connections["address"], connections["family"][:, None]
    return np.ascontiguousarray(wide).view("V17")[:, :, 0]


def _itself(connections: Array) -> tuple[Bools, Bools]:
    ends = addresses(connections)
    same = np.repeat(ends[:, :1] == ends[:, 1:], 2, axis=1)
    return same, ~same


def _stated(connections: Array) -> tuple[Bools, Bools]:
    out, into = connections["outgoing"] > 0, connections["incoming"] > 0
    forwarded = (out & into).any(axis=1, keepdims=True)
    local = (out | into[:, ::-1]) & ~forwarded
    return local, (into | out[:, ::-1] | forwarded) & ~local


def _partial(connections: Array) -> tuple[Bools, Bools]:
    share = connections["partial"] > connections["packets"] // 2
    share &= np.isin(connections["ttl"], _TTLS)
    local = share & (connections["partial"][:, ::-1] == 0) & (connections["packets"] > 0).all(axis=1, keepdims=True)
    return local, local[:, ::-1]


def _handshakes(connections: Array) -> tuple[Bools, Bools]:
    rows = np.flatnonzero(
        (connections["opener"] != NOT_KNOWN) & (connections["ack_ns"] >= 0) & (connections["syn_ns"] >= 0)
    )
    some = connections[rows]
    first, second = some["synack_ns"] - some["syn_ns"], some["ack_ns"] - some["synack_ns"]
    local, elsewhere = (np.zeros((len(connections), 2), np.bool_) for _ in range(2))
    opener = some["opener"].astype(np.int64)
    for end, (own, other) in ((opener, (second, first)), (1 - opener, (first, second))):
        near = (other >= _TIMES * own + _LEAST_NS) & np.isin(some["ttl"][np.arange(len(rows)), end], _TTLS)
        near &= _fastest(connections, rows, end, own) <= _OWN_NS
        local[rows, end] = near
        elsewhere[rows, end] = ~near & (np.maximum(own, other) >= _LEAST_NS)
    return local, elsewhere


def _fastest(connections: Array, rows: Ints, end: Ints, own: Ints) -> Ints:
    """For each of these connections' ends the shortest of the answers of its address."""
    _, number = np.unique(addresses(connections)[rows, end], return_inverse=True)
    least = np.full(len(rows), np.iinfo(np.int64).max)
    np.minimum.at(least, number.reshape(-1), own)
    return np.asarray(least[number.reshape(-1)])


def _by_address(connections: Array, local: Bools, elsewhere: Bools) -> Bools:
    """(n, 2): whether an end's address is one whose connections were captured at it."""
    if not local.any():
        return np.zeros_like(local)
    _, number = np.unique(addresses(connections), return_inverse=True)
    number = number.reshape(-1)
    yes = np.bincount(number, local.reshape(-1))
    decided = yes + np.bincount(number, (elsewhere & ~local).reshape(-1))
    here = (yes > 0) & (yes >= _AGREE * decided)
    return np.asarray(here[number].reshape(local.shape))
