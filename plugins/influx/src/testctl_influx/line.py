# SPDX-License-Identifier: Apache-2.0
"""Line protocol: one line a record, escaped so that InfluxDB reads back what was written.

https://docs.influxdata.com/influxdb/v1/write_protocols/line_protocol_reference/.  Numbers are always written as
floats, so that a field has one type whatever run it comes from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache

Value = float | int | str | None

_MEASUREMENT = re.compile(r"([, ])")
_KEY = re.compile(r"([,= ])")
_TEXT = re.compile(r'(["\\])')
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_RESERVED = frozenset({"time", "_measurement", "_field"})


def head(measurement: str, tags: Mapping[str, str]) -> str:
    """How a line of these tags starts; empty tags are left out, as InfluxDB knows none.

    Raises ValueError for a name or a tag that the protocol has no way to write (see `writable`).
    """
    parts = [_escaped(_MEASUREMENT, measurement)]
    if measurement.startswith("#"):
        raise ValueError(f"line protocol: want a measurement that does not start as a comment; got {measurement!r}")
    parts += [f"{_key(name)}={_escaped(_KEY, value)}" for name, value in sorted(tags.items()) if value]
    return ",".join(parts)


def line(start: str, fields: Mapping[str, Value], time_ns: int) -> str | None:
    """A line that starts as `head` made it; None when no field has a value (None, NaN and infinity are none)."""
    written = [f"{_key(name)}={value}" for name, given in fields.items() if (value := _field(given)) is not None]
    return f"{start} {','.join(written)} {time_ns}" if written else None


def writable(text: str) -> str:
    """The text as a tag can hold it: control characters are spaces, and the last character is no backslash.

    The protocol can't write either; a backslash at the end would escape the comma behind it.
    """
    text = _CONTROL.sub(" ", text)
    return text + " " if text.endswith("\\") else text


def _field(value: Value) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return '"' + _TEXT.sub(r"\\\1", value) + '"'
    number = float(value)
    return repr(number) if math.isfinite(number) else None


@lru_cache(maxsize=4096)
def _key(name: str) -> str:
    if name in _RESERVED:
        raise ValueError(f"line protocol: want a key other than {', '.join(sorted(_RESERVED))}; got {name!r}")
    return _escaped(_KEY, name)


@lru_cache(maxsize=65536)
def _escaped(special: re.Pattern[str], text: str) -> str:
    if not text or text != writable(text):
        raise ValueError(
            f"line protocol: want text with no control character and no backslash at its end; got {text!r}"
        )
    return special.sub(r"\\\1", text)
