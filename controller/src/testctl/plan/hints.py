# SPDX-License-Identifier: Apache-2.0
"""Suggestions for unknown units and names of parameters."""

from __future__ import annotations

import difflib
import re

from testctl_agent.spec.types import Amount, ValueType
from testctl_agent.spec.units import Bytes, Duration, Quantity, Rate

from testctl.plan.formula import PATH_QUANTITIES

_RANGE = re.compile(r"\s*(\d[\w.]*?\w*)\s*(?:\.\.+|…|-|to)\s*(\d[\w.]*)\s*")
_STEPS = 5
"""Values that are proposed for a range, its ends included, in equal ratios."""
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\d\s].*?)\s*")
_RATE = re.compile(r"([kmgt]?)i?(?:bits?|b)(?:/s|/sec|ps|ps/s)?")
_OCTETS = re.compile(r"[kKmMgG]?i?B(?:/s|ps)?")
"""Bytes a second, if it is to be a rate."""
_SIZE = re.compile(r"([kmg]?)(i?)(?:bytes?|b)?")
_TIMES = {
    "s": ("sec", "secs", "second", "seconds"),
    "ms": ("msec", "msecs", "millisecond", "milliseconds", "millis"),
    "us": ("usec", "usecs", "microsecond", "microseconds", "micros", "μs"),
    "ns": ("nsec", "nsecs", "nanosecond", "nanoseconds", "nanos"),
    "min": ("m", "mins", "minute", "minutes"),
}
_SIZES = {"": "B", "k": "kB", "m": "MB", "g": "GB", "ki": "KiB", "mi": "MiB", "gi": "GiB"}

SYNONYMS = {
    "bandwidth": "rate", "bw": "rate", "speed": "rate", "capacity": "rate", "latency": "delay", "rtt": "delay",
    "loss": "fate", "drop": "fate", "queue": "buffer", "limit": "buffer", "queue_size": "buffer",
    "congestion": "cc", "congestion_control": "cc", "tcp_congestion_control": "cc", "algorithm": "cc",
    "time": "duration", "length": "duration", "size": "bytes", "connections": "parallel", "streams": "parallel",
    "ecn": "tcp_ecn", "sack": "tcp_sack", "iw": "initcwnd", "gso": "tso",
}  # fmt: skip
"""Alternative names → our parameters; suggested if the entity has them."""
ELSEWHERE = {
    "loss": 'a switch loses packets: [switch, fate, "lose 1e-2 of FLOW seed 1"]',
    "protocol": "a flow is TCP; other programs: [FLOW, generator, command] (docs/plans.md)",
}  # fmt: skip
ELSEWHERE |= {"drop": ELSEWHERE["loss"], "udp": ELSEWHERE["protocol"], "quic": ELSEWHERE["protocol"]}
"""Names of what no parameter of the entity sets -> what sets it."""


def value_meant(kind: ValueType, raw: object) -> str:
    """ "; did you mean 10gbit?" for a value such as 10GBit, a range for 1ms..100ms, or "".  `kind` refuses `raw`."""
    if not isinstance(raw, str) or not isinstance(kind, Amount):
        return ""
    if match := _RANGE.fullmatch(raw[:60]):
        return _range(kind, *match.groups())
    match = _NUMBER.fullmatch(raw[:40])
    if match and (near := difflib.get_close_matches(match[2].lower(), PATH_QUANTITIES, n=1, cutoff=0.6)):
        return f"; did you mean {match[1]} {near[0]}?"
    if match is None:
        return ""
    unit = _unit(kind.of, match[2])
    try:
        kind.parse(f"{match[1]}{unit}")
    except ValueError:
        return ""
    return f"; did you mean {match[1]}{unit}?" if unit else ""


def _range(kind: Amount, first: str, last: str) -> str:
    """The range, ready to be copied."""
    try:
        rising = kind.parse(first) != kind.none != kind.parse(last) and 0 < kind.of.parse(first) < kind.of.parse(last)
    except ValueError:
        return ""
    return f"; did you mean {{from: {first}, to: {last}, steps: {_STEPS}, scale: log}}?" if rising else ""


def _unit(quantity: type[Quantity], raw: str) -> str:
    low = raw.lower()
    if quantity is Rate:
        match = _RATE.fullmatch(low)
        prefix = match[1] if match and not _OCTETS.fullmatch(raw) else None
        return f"{prefix}bit" if prefix is not None and prefix != "t" else ""
    if quantity is Bytes:
        match = _SIZE.fullmatch(low)
        return _SIZES.get(match[1] + match[2], "") if match and low else ""
    if quantity is Duration:
        return next((unit for unit, others in _TIMES.items() if low == unit or low in others), "")
    return ""


def name_meant(word: str, known: list[str]) -> str:
    """ "; did you mean cc?" for an alternative name, or the parameter to set instead, or ""."""
    other = SYNONYMS.get(word, "")
    if other in known:
        return f"; did you mean {other}?"
    if word in ELSEWHERE:
        return f"; {ELSEWHERE[word]}"
    if word.startswith("net."):
        return "; of sysctls those below net.ipv4 and net.core can be set"
    return ""
