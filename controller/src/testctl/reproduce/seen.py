# SPDX-License-Identifier: Apache-2.0
"""What the hosts' own settings were, by their packets: options, MTU, ECN, and which congestion controls it can't be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testctl.records.schema import ACK, FIN, RST, SYN, Array
from testctl.reproduce.application import PACED, Application
from testctl.reproduce.wire import Way, Wire

_ETHERNET = 14
_CWR_ECE = 0xC0
_MTU = (576, 65_535)
_FULL = 3
"""Packets of the largest size that make it the MTU's."""
_FIRST_WINDOW = 65_536
"""The receive window of older kernels with the first data, bytes."""
REDUCTION = {
    "cubic": 0.7, "bbr": 1.0, "reno": 0.5, "dctcp": 0.5, "htcp": 0.5, "highspeed": 0.5, "vegas": 0.55, "westwood": 0.5,
    "veno": 0.5, "bic": 0.8, "illinois": 0.76, "scalable": 0.875, "yeah": 0.74, "areno": 0.65,
}  # fmt: skip
"""Congestion controls of the lab's kernels, those in wide use first, and the window's share that each keeps after a
loss (their sources in net/ipv4; a middle where it varies)."""


@dataclass(frozen=True)
class Seen:
    """Settings of both hosts; None where the packets don't show it.

    mtu         bytes from the IP header on
    tso         whether frames above the MSS left a host; gro: whether such frames arrived
    timestamps, sack   whether they were used
    ecn         of each host, the value of tcp_ecn that it acts by
    not_cc      {congestion control: why it is none}; first: those left, the likeliest first
    kept        share of the window after the first loss
    old_window  whether the receive window does not grow with the first data, as before Linux 6.6
    """

    mtu: int | None
    tso: bool
    gro: bool
    timestamps: bool | None
    sack: bool | None
    ecn: tuple[int | None, int | None]
    not_cc: dict[str, str]
    kept: float | None
    old_window: bool | None

    @property
    def ccs(self) -> list[str]:
        left = [name for name in REDUCTION if name not in self.not_cc]
        if self.kept is None:
            return left
        return sorted(left, key=lambda name: abs(REDUCTION[name] - (self.kept or 0.0)))


def seen_of(wire: Wire, apps: Sequence[Application], sacked: bool, timestamps: Array, windows: Array) -> Seen:
    """sacked: whether any packet has a SACK block; timestamps: column tsval; windows: of the first ACKs of data."""
    prompt = _mean([app.prompt for app in apps])
    ways = wire.ways
    lost = any(bool((way.lost & way.data).any()) for way in ways)
    single = [int(way.length.max(initial=0)) for way in ways]
    sizes = np.concatenate([way.wire for way in ways]) - _ETHERNET
    most = int(sizes.max(initial=0))
    frames = [way.largest_frame > size > 0 for way, size in zip(ways, single, strict=True)]
    data = ways[0] if ways[0].length.sum() >= ways[1].length.sum() else ways[1]
    return Seen(
        mtu=most if (sizes == most).sum() >= _FULL and _MTU[0] <= most <= _MTU[1] else None,
        tso=any(frames),
        gro=any(frames),
        timestamps=bool((timestamps >= 0).any()) if len(timestamps) else None,
        sack=True if sacked else False if lost else None,
        ecn=_ecn(ways),
        not_cc=_excluded(data, prompt),
        kept=max((app.kept for app in apps if app.kept is not None), default=None),
        old_window=_old(windows),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _ecn(ways: tuple[Way, Way]) -> tuple[int | None, int | None]:
    """By the SYN of a host that connects, and the SYN-ACK of one that answers: 1, or 0 where it does not want ECN."""
    values: list[int | None] = []
    for way, other in (ways, ways[::-1]):
        syn = (way.flags & (SYN | ACK)) == SYN
        answer = (way.flags & (SYN | ACK)) == SYN | ACK
        wanted = bool((((other.flags & (SYN | ACK)) == SYN) & ((other.flags & _CWR_ECE) == _CWR_ECE)).any())
        if syn.any():
            values.append(int(((way.flags[syn] & _CWR_ECE) == _CWR_ECE).any()))
        elif answer.any() and wanted:
            values.append(int((way.flags[answer] & _CWR_ECE).any()))
        else:
            values.append(None)
    return values[0], values[1]


def _excluded(way: Way, prompt: float | None) -> dict[str, str]:
    """Congestion controls that packets rule out: DCTCP sets ECT on all packets, BBR paces."""
    out: dict[str, str] = {}
    plain = (way.length == 0) & ((way.flags & (SYN | RST | FIN)) == 0)
    some = (way.ecn[way.data] != 0).any() if way.data.any() else False
    if not some:
        out["dctcp"] = "no data is ECN-capable"
    elif plain.any():
        if (way.ecn[plain] != 0).any():
            out |= {name: "ACKs are ECN-capable, as with DCTCP alone" for name in REDUCTION if name != "dctcp"}
        else:
            out["dctcp"] = "ACKs are not ECN-capable"
    if prompt is not None and "bbr" not in out and prompt >= PACED:
        out["bbr"] = f"{prompt:.0%} of the data was sent at once when an ACK had come, without pacing"
    elif prompt is not None and prompt < PACED and "bbr" not in out:
        out |= {name: "data was sent by pacing, as with BBR alone" for name in REDUCTION if name != "bbr"}
    return out


def _old(windows: Array) -> bool | None:
    """Linux 6.6 began to derive the window from the share of payload in memory: it grows with the first data."""
    return bool(windows[0] <= _FIRST_WINDOW) if len(windows) else None
