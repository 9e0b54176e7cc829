# SPDX-License-Identifier: Apache-2.0
"""Reads the subject and the validity of a certificate, for the agent's check of its own at start.

The checks that matter, of the peer's signature and time, are TLS's.  Source: RFC 5280, 4.1 and 4.1.2.5.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

_SEQUENCE, _SET, _VERSION, _UTC_TIME, _TIME = 0x30, 0x31, 0xA0, 0x17, 0x18
_COMMON_NAME = bytes([0x55, 0x04, 0x03])  # 2.5.4.3


@dataclass(frozen=True)
class Certificate:
    """The common names of its subject, and the times between which it is valid."""

    names: tuple[str, ...]
    begin: datetime
    end: datetime

    def wrong_at(self, now: datetime) -> str:
        """Why it is not valid at a time; "" if it is."""
        if now < self.begin:
            return f"is valid from {self.begin:%Y-%m-%d %H:%M:%S} UTC on; now it is {now:%Y-%m-%d %H:%M:%S}"
        if now > self.end:
            return f"expired at {self.end:%Y-%m-%d %H:%M:%S} UTC; now it is {now:%Y-%m-%d %H:%M:%S}"
        return ""


def parse(pem: str) -> Certificate:
    """The first certificate of a PEM file.  Raises ValueError."""
    begin, end = pem.find(ssl.PEM_HEADER), pem.find(ssl.PEM_FOOTER)
    if begin < 0 or end < begin:
        raise ValueError("want a certificate in PEM; got none")
    der = ssl.PEM_cert_to_DER_cert(pem[begin : end + len(ssl.PEM_FOOTER)])
    outer = _content(der, _SEQUENCE)
    parts = [part for part in _parts(_content(outer, _SEQUENCE)) if part[0] != _VERSION]
    if len(parts) < 5:  # serial number, algorithm, issuer, validity, subject, …
        raise ValueError("want a certificate; it is cut off")
    times = [_time(kind, data) for kind, data in _parts(parts[3][1])]
    if len(times) != 2:
        raise ValueError(f"want two times of validity; got {len(times)}")
    return Certificate(tuple(_common_names(parts[4][1])), times[0], times[1])


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, content) of each part of a constructed DER value."""
    at = 0
    while at < len(data):
        head = data[at : at + 2]
        if len(head) < 2:
            raise ValueError("want DER; it is cut off")
        at += 2
        length = head[1]
        if length & 0x80:
            more = length & 0x7F
            length = int.from_bytes(data[at : at + more], "big")
            at += more
        if at + length > len(data):
            raise ValueError("want DER; it is cut off")
        yield head[0], data[at : at + length]
        at += length


def _content(data: bytes, tag: int) -> bytes:
    """The content of the first part, which has to have a tag."""
    kind, content = next(_parts(data), (None, b""))
    if kind != tag:
        raise ValueError(f"want DER with tag {tag:#x}; got another")
    return content


def _time(kind: int, data: bytes) -> datetime:
    """A UTCTime or a GeneralizedTime, both in UTC; years of two digits are 1950 to 2049."""
    form = {_UTC_TIME: "%y%m%d%H%M%SZ", _TIME: "%Y%m%d%H%M%SZ"}.get(kind)
    if form is None:
        raise ValueError(f"want a time; got tag {kind:#x}")
    time = datetime.strptime(data.decode("ascii"), form).replace(tzinfo=UTC)
    return time.replace(year=time.year - 100) if kind == _UTC_TIME and time.year >= 2050 else time


def _common_names(subject: bytes) -> Iterator[str]:
    for kind, several in _parts(subject):
        for _, pair in _parts(several) if kind == _SET else ():
            attribute, value = [*_parts(pair), (0, b""), (0, b"")][:2]
            if attribute[1] == _COMMON_NAME:
                yield value[1].decode("utf-8", errors="replace")
