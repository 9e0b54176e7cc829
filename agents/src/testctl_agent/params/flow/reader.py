# SPDX-License-Identifier: Apache-2.0
"""How a flow's receiving application reads."""

from __future__ import annotations

from functools import partial

from testctl_agent.params.types import TIMES, Grammar
from testctl_agent.spec import schedule
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes, Duration, Rate

NONE = "none"
_spec = partial(ParamSpec, kind="flow", role="flow")


def base_units(text: str) -> str:
    """A read_pause as tgen takes it: nanoseconds; "" for none."""
    return ",".join(f"{low}-{high}" for low, high in schedule.parse_down(text))


def _later(text: str) -> tuple[Bytes, Duration]:
    """The size, and when it is set."""
    size, separator, at = text.partition(" at ")
    if not separator:
        raise ValueError(f"want a size and a time such as '4kB at 2s'; got {text!r}")
    value = int(Bytes.parse(size.strip()))
    if not 1000 <= value <= 10**9:
        raise ValueError(f"want a size from 1kB to 1GB; got {size.strip()!r}")
    return Bytes(value), Duration.parse(at.strip())


def _show_later(text: str) -> str:
    return NONE if text.strip() == NONE else "{} at {}".format(*_later(text))


def resize(text: str) -> dict[str, int]:
    """A receive_buffer_later as tgen takes it; {} for none."""
    if text.strip() == NONE:
        return {}
    size, at = _later(text)
    return {"resize_ns": int(at), "resize_bytes": int(size)}


SPECS = [
    _spec(
        name="read_pause",
        help="When the receiver reads nothing, by times after the flow's start: its receive window closes",
        type=TIMES,
        example="2s-3s",
    ),
    _spec(
        name="receive_buffer_later",
        help="SO_RCVBUF that the receiver sets at a time after the flow's start, also in a pause of its reading: a "
        "smaller one may take back window",
        type=Grammar("a size and a time such as '4kB at 2s', or none", _show_later),
        example="4kB at 2s",
    ),
    _spec(
        name="read_rate",
        help="Rate at which each connection's receiver reads, 1 ms of it at a time, at least 1448 bytes; none: as it "
        "arrives",
        type=Amount(Rate, least=1, most=10**13, none="none"),
        example="10mbit",
    ),
]
