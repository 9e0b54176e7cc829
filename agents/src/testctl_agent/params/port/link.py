# SPDX-License-Identifier: Apache-2.0
"""A switch port: its queue, and the link behind it."""

from __future__ import annotations

from functools import partial

from testctl_agent.params.switch_backend import apply, read, unavailable
from testctl_agent.params.types import TIMES, Changing, Grammar, Largest
from testctl_agent.spec import aqm, jitter, trace
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes, Duration, Rate

__all__ = ["SPECS", "apply", "read", "unavailable"]

_spec = partial(ParamSpec, kind="port")

CONSTANT = ("bmv2", "netem", "tofino")
"""The back ends whose links do not change."""

SPECS = [
    _spec(
        name="aqm",
        help="What manages this port's queue: Linux's codel (RFC 8289), fq_codel (RFC 8290), pie (RFC 8033), fq_pie, "
        "cake, sfq or red, or the lab's dualpi2 (RFC 9332, for L4S) or policer, with its parameters by their names "
        "there; fifo: the buffer alone; a lab has it",
        type=Grammar(aqm.WANT, aqm.canonical),
        after=("mtu", "rate", "delay", "down", "jitter", "largest", "buffer", "ecn_threshold", "framing"),
        example="codel target 5ms interval 100ms ecn",
        beside=("[switch:receiver, rate, 10mbit]",),
    ),
    _spec(
        name="buffer",
        help="Bytes that may wait at this port; none: as many as come",
        type=Amount(Bytes, least=1, most=2**31, none="none"),
        after=("mtu", "rate", "delay"),
    ),
    _spec(
        name="delay",
        help="One-way delay from this port to its neighbour; a schedule changes it at times of the traffic",
        type=Changing(Duration, most=10**12, example="20ms; 2s 50ms; 4s 20ms"),
        after=("mtu",),
    ),
    _spec(
        name="down",
        help="When the link is down, by times of the traffic: what waits at the port then, or arrives, is lost",
        type=TIMES,
        after=("mtu", "rate", "delay"),
    ),
    _spec(
        name="ecn_threshold",
        help="Bytes waiting at which this port marks CE (a queue's depth has 19 bits in P4); none: it never marks",
        type=Amount(Bytes, least=1, most=2**19 - 1, none="none"),
        after=("mtu", "rate", "buffer"),
    ),
    _spec(
        name="framing",
        help="Bytes that each packet takes on the wire beyond its own; Ethernet's preamble, check sequence and gap "
        "are 24",
        type=Amount(Bytes, most=1000),
        after=("mtu",),
    ),
    _spec(
        name="jitter",
        help="A random delay of each packet beside the port's own: uniform (up to), normal (mean, deviation) or "
        "exponential (mean), with a seed; packets overtake each other, but not with ', in order'",
        type=Grammar(jitter.WANT, jitter.canonical),
        after=("mtu", "rate", "delay"),
        example="uniform 5ms seed 1",
    ),
    _spec(
        name="largest",
        help="Bytes, from the IP header on, of the largest packet that the link takes; a larger one is lost and its "
        "sender gets no message, which makes a black hole of path MTU discovery, or with 'icmp' the one of a router "
        "(fragmentation needed, or packet too big); a schedule changes it at times of the traffic",
        type=Largest(Bytes, least=68, most=65_535, none="none", example="none; 2s 1400B icmp"),
        after=("mtu", "rate", "delay"),
    ),
    _spec(
        name="rate",
        help="Rate at which the port sends; none: as fast as the machine; a schedule changes it at times of the "
        "traffic (0bit: packets wait); a trace of Mahimahi has the times at which a packet of 1500 bytes may leave",
        type=Changing(
            Rate,
            least=8,
            most=10**13,
            none="none",
            holds=True,
            example="100mbit; 2s 20mbit; 4s none",
            file=trace.value_of,
            value=trace.is_trace,
        ),
        after=("mtu",),
    ),
]
