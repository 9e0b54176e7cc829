# SPDX-License-Identifier: Apache-2.0
"""The rate limiter of a host: HTB on its device, with marking.

    eth0 root  htb 1:            default class 1:1, rate = ceil = htb_rate, bucket htb_burst
      leaf     bfifo or red      limit htb_buffer

htb_mark data: with a threshold the leaf is a RED that is an exact threshold (qdisc.red_options):
a packet that finds at least that many bytes waiting is marked CE if it can be.
htb_mark ack: the leaf is a FIFO without a limit, the queue is counted, limited, and shown to the
ACKs by the programs of bpf/htb_mark.c.  They mark data too, by the same rule as RED, where the
kernel has no RED.

`read` takes everything from the kernel, and `write` changes only what differs, so parameters are
applied and restored in any order that begins (and ends) with htb_rate.  For two numbers, the
kernel must record whether they were set or are defaults.  HTB's quantum (without effect with a
single class) holds the requested burst, because the kernel keeps a time instead; the handle of the
leaf shows whether a buffer was set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from testctl_agent.network import qdisc
from testctl_agent.params.devices import unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import ApplyError, TestbedError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount, Choice, Value
from testctl_agent.spec.units import Bytes, Rate

_spec = partial(ParamSpec, kind="host")
_LIMITER = ("[hosts, htb_rate, 10mbit]",)

SPECS = [
    _spec(
        name="htb_buffer",
        help="Bytes that may wait in HTB; none: 1 MB",
        type=Amount(Bytes, least=1, most=2**31 - 1, none="none"),
        after=("htb_rate",),
        beside=_LIMITER,
    ),
    _spec(
        name="htb_burst",
        help="Bucket of HTB; none: 10 us of its rate, at least 1600 bytes",
        type=Amount(Bytes, least=1, most=2**30 - 1, none="none"),
        after=("htb_rate",),
        beside=_LIMITER,
    ),
    _spec(
        name="htb_ecn_threshold",
        help="Bytes waiting in HTB at which it marks (see htb_mark); none: it never marks",
        type=Amount(Bytes, least=1, most=2**31 - 1, none="none"),
        after=("htb_rate", "htb_mark"),
        beside=_LIMITER,
    ),
    _spec(
        name="htb_mark",
        help="data: CE on data packets; ack: ECE on the ACKs that come back",
        type=Choice(("data", "ack")),
        after=("htb_rate",),
    ),
    _spec(
        name="htb_rate",
        help="Rate limit of what the host sends (HTB); none: no limiter",
        type=Amount(Rate, least=8, most=10**13, none="none"),
    ),
]

DEFAULT_BUFFER = 1_000_000
"""Bytes that may wait when htb_buffer says nothing."""

_MIN_BURST, _BURST_NS = 1600, 10_000
_ROOT, _CLASS = 0x10000, 0x10001
_QUANTUM_BASE = 1 << 30
_UNLIMITED = 2**31 - 1
_LEAVES = {("bfifo", False): 0x10, ("red", False): 0x20, ("ack", False): 0x30, ("data", False): 0x40}
_LEAVES |= {(form, True): handle + 1 for (form, _), handle in list(_LEAVES.items())}
_FORMS = {handle << 16: form for form, handle in _LEAVES.items()}
_COUNTED = ("ack", "data")
"""The leaves around which the programs of bpf/htb_mark.c count and mark."""


@dataclass(frozen=True)
class Htb:
    """The limiter's state.  rate in bit/s, the others in bytes; None is not set."""

    rate: int | None = None
    burst: int | None = None
    buffer: int | None = None
    ecn_threshold: int | None = None
    mark: str = "data"

    @property
    def form(self) -> tuple[str, bool]:
        """The leaf's kind, and whether a buffer is set."""
        if self.mark == "ack":
            kind = "ack"
        elif self.ecn_threshold is None:
            kind = "bfifo"
        else:
            kind = "data" if qdisc.unavailable("red") else "red"
        return kind, self.buffer is not None


def default_burst(rate: int) -> int:
    """The bucket when htb_burst is none: 10 us of the rate, at least one packet of 1600 bytes."""
    return max(_MIN_BURST, rate * _BURST_NS // (8 * 10**9))


def class_options(htb: Htb) -> bytes:
    """The options of class 1:1; ValueError for a rate the kernel can't have."""
    rate = htb.rate or 0
    burst = default_burst(rate) if htb.burst is None else htb.burst
    ticks = qdisc.bucket_ticks(burst, rate)
    if ticks >= 2**32:
        raise ValueError(f"a bucket of {burst} bytes takes {ticks * qdisc.TICK_NS / 1e9:.0f} s to fill; want < 274 s")
    return qdisc.htb_class_options(rate, ticks, _QUANTUM_BASE + (htb.burst or 0))


def read_state(device: str) -> Htb:
    """The limiter on the device; ApplyError when its root qdisc is somebody else's."""
    qdiscs = qdisc.qdiscs(device)
    root = next((q for q in qdiscs if q.parent == qdisc.ROOT and q.handle), None)
    if root is None:
        return Htb()
    inner = [q for q in qdiscs if q.parent == _CLASS]
    ours = [c for c in qdisc.classes(device) if c.handle == _CLASS]
    if (root.kind, root.handle) != ("htb", _ROOT) or not inner or not ours or inner[0].handle not in _FORMS:
        raise ApplyError(f"device {device}: want the kernel's default or our own root qdisc; got {root}")
    rate, ticks, quantum = qdisc.parse_htb_class(ours[0].options)
    burst = (quantum - _QUANTUM_BASE) or None
    if ticks != qdisc.bucket_ticks(default_burst(rate) if burst is None else burst, rate):
        burst = ticks * qdisc.TICK_NS * rate // (8 * 10**9)
    (kind, has_buffer), leaf = _FORMS[inner[0].handle], inner[0].options
    if kind in _COUNTED:
        from testctl_agent.bpf import htb_mark

        queue = htb_mark.read(device)
        if queue is None:  # a process that was killed had just removed them
            return Htb(rate, burst, None, None if kind == "ack" else htb_mark.UNSET, kind)
        threshold = None if kind == "ack" and queue.threshold == htb_mark.UNSET else queue.threshold
        return Htb(rate, burst, queue.limit if has_buffer else None, threshold, kind)
    limit, marking = qdisc.parse_red(leaf) if kind == "red" else (qdisc.parse_bfifo(leaf), None)
    return Htb(rate, burst, limit if has_buffer else None, marking, "data")


def write_state(device: str, old: Htb, new: Htb) -> None:
    """Go from one state to another.  Raises NetlinkError, TestbedError or ValueError."""
    if new.rate is None and new != Htb():
        raise ValueError("there is no htb_rate to go with it")
    if new.rate is None:
        remove(device)
    elif old != new:
        try:
            _put(device, old, new, class_options(new))
        except TestbedError:
            if old.rate is None:
                remove(device)
            raise


def remove(device: str) -> None:
    """Take the limiter off, and what an agent that was killed left of it.  ApplyError for somebody else's."""
    qdiscs = qdisc.qdiscs(device)
    if any(q.parent == qdisc.ROOT and q.handle for q in qdiscs):
        read_state(device)  # raises, and says whose it is, when it is not ours
        qdisc.delete_qdisc(device, _ROOT, qdisc.ROOT)
    if any(q.kind == "clsact" for q in qdiscs):
        from testctl_agent.bpf import htb_mark

        htb_mark.remove(device)


def _put(device: str, old: Htb, new: Htb, options: bytes) -> None:
    """Qdisc, class and leaf go to the kernel in one batch, so that there is never an HTB without its leaf."""
    form, before = new.form, old.form
    kind, counted = form[0], form[0] in _COUNTED
    buffer = DEFAULT_BUFFER if new.buffer is None else new.buffer
    if counted or before[0] in _COUNTED:
        from testctl_agent.bpf import htb_mark
    if counted:
        threshold = htb_mark.UNSET if new.ecn_threshold is None else new.ecn_threshold
        try:
            htb_mark.put(device, threshold, buffer, data=kind == "data")
        except TestbedError as error:
            why = f"{qdisc.unavailable('red')}, so a BPF program has to mark data: " if kind == "data" else ""
            raise TestbedError(f"{why}{error}") from error
    if kind == "red":
        name, leaf = "red", qdisc.red_options(buffer, new.ecn_threshold or 0)
    else:
        name, leaf = "bfifo", qdisc.bfifo_options(_UNLIMITED if counted else buffer)
    same = form == before and (counted or (new.buffer, new.ecn_threshold) == (old.buffer, old.ecn_threshold))
    changes = [qdisc.new_class(device, "htb", _CLASS, _ROOT, options)]
    if old.rate is None:
        changes.insert(0, qdisc.new_qdisc(device, "htb", _ROOT, qdisc.ROOT, qdisc.htb_options()))
    if fresh := old.rate is None or not same:
        changes.append(qdisc.new_qdisc(device, name, _LEAVES[form] << 16, _CLASS, leaf))
    qdisc.make(*changes)
    if fresh and counted:
        htb_mark.emptied(device)
    if not counted and before[0] in _COUNTED:
        htb_mark.remove(device)


def read(entity: Entity, name: str) -> Value:
    """htb_NAME of the limiter on the host's device; "none" where it is not set."""
    value = getattr(read_state(entity.device), name.removeprefix("htb_"))
    return "none" if value is None else value


def apply(entity: Entity, name: str, value: Value) -> None:
    changed: dict[str, Any] = {name.removeprefix("htb_"): None if value == "none" else value}
    try:
        if name == "htb_rate" and value == "none":
            remove(entity.device)
        else:
            old = read_state(entity.device)
            write_state(entity.device, old, replace(old, **changed))
    except (TestbedError, ValueError) as error:
        raise entity.refuse(name, value, error) from error


def unavailable(entity: Entity, name: str) -> str:
    """Why this host can't have the parameter: no device, a qdisc that is not ours, no such qdisc in the kernel."""

    def reason(device: str) -> str:
        read_state(device)
        return qdisc.unavailable("htb")

    return unavailable_on(replace(entity, devices=entity.devices[:1]), reason)
