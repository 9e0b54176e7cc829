# SPDX-License-Identifier: Apache-2.0
"""Switch ports modelled by the kernel's netem: rate, delay and buffer of each port's egress.

netem sends a packet when the one before it has been sent (rate), and hands it over `delay` later:
first serialisation, then propagation, so its one queue holds both.  Its limit is in packets, so
the buffer in bytes becomes

    limit = ceil((buffer + rate * delay) / packet) + 1,   packet = MTU + 14 bytes

(the packets that wait, those under way, and the one being sent).  The buffer in bytes is noted
in the kernel, too, where netem keeps the correlation of a jitter that is not used.  Reading the buffer gives
these bytes if the limit in force is the one computed from them, and the limit itself if not.

Source: net/sched/sch_netem.c of Linux 6.1 and 6.12.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from testctl_agent.network import netlink, qdisc
from testctl_agent.spec.ecmp import Stations
from testctl_agent.spec.errors import ApplyError, TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.switch.backend import PORT_PARAMETERS, SWITCH_PARAMETERS, UNSET, settable

_HANDLE = 0x10000
_ETHERNET_HEADER = 14
_NO_BUFFER_LIMIT = 1_000_000
"""Packets when no buffer is set: more than any test has under way."""


_NOT_HERE = {
    "aqm": "netem has no queue that manages itself; take the back end ebpf in a lab",
    "down": "netem has no link that goes down; take the back end ebpf",
    "largest": "netem drops no packets by their size; take the back end ebpf",
    "jitter": "netem's jitter draws from the kernel's random numbers; take the back end ebpf",
    "ecn_threshold": "netem can't mark at a queue length; take the back end ebpf",
    "framing": "netem counts the bytes of a packet and no more; take the back end ebpf",
}


@dataclass(frozen=True)
class Model:
    """A port: rate in bit/s (0: none), delay in ns, buffer in bytes (0: none)."""

    rate: int = 0
    delay: int = 0
    buffer: int = 0


def packet_limit(model: Model, mtu: int) -> int:
    """netem's limit for a port with this MTU; see the head of the file for the formula."""
    if not model.buffer or not model.rate:
        return _NO_BUFFER_LIMIT
    under_way = -(-model.rate * model.delay // (8 * 10**9))
    return min(-(-(model.buffer + under_way) // (mtu + _ETHERNET_HEADER)) + 1, 2**32 - 1)


def _in_force(port: str) -> tuple[Model, int]:
    """The port's model and packet limit; ApplyError when its root qdisc is somebody else's."""
    root = qdisc.root(port)
    if root is None:
        return Model(), _NO_BUFFER_LIMIT
    if root.kind != "netem" or root.handle != _HANDLE:
        raise ApplyError(f"port {port}: want the kernel's default or our own root qdisc; got {root}")
    rate, delay, limit, note = qdisc.parse_netem(root.options)
    return Model(rate, delay, note), limit


class NetemBackend:
    """The back end `netem`: a bridge forwards, netem models each port."""

    name = "netem"

    def __init__(self, ports: tuple[str, ...]) -> None:
        self.ports = ports
        self._missing: str | None = None

    def unavailable(self, what: str) -> str:
        if what == "ecmp_seed":
            return "the kernel's bridge has one way to each host; take the back end ebpf"
        if what in SWITCH_PARAMETERS:
            return "netem knows no flows; take the back end ebpf"
        if what not in PORT_PARAMETERS:
            return f"a port has no {what}"
        if what in _NOT_HERE:
            return _NOT_HERE[what]
        if self._missing is None:
            self._missing = qdisc.unavailable("netem")
        return self._missing

    def read(self, port: str, what: str) -> Value:
        if what in SWITCH_PARAMETERS or what in _NOT_HERE:
            return UNSET[what]
        model, limit = _in_force(port)
        if what == "buffer":
            derived = packet_limit(model, netlink.mtu(port))
            return model.buffer or "none" if limit == derived else f"{limit} packets"
        return {"rate": model.rate or "none", "delay": model.delay}[what]

    def apply(self, port: str, what: str, value: Value) -> None:
        if not settable(self, port, what, value):
            return
        model = replace(_in_force(port)[0], **{what: 0 if value == "none" else int(value)})
        try:
            if model != Model():
                limit = packet_limit(model, netlink.mtu(port))
                options = qdisc.netem_options(model.rate, model.delay, limit, model.buffer)
                qdisc.put_qdisc(port, "netem", _HANDLE, qdisc.ROOT, options)
            elif qdisc.root(port) is not None:
                qdisc.delete_qdisc(port, _HANDLE, qdisc.ROOT)
        except (TestbedError, ValueError) as error:
            raise ApplyError(f"port {port}, {what}: want {value}; {error}") from error

    def describe(self) -> dict[str, str]:
        return {
            "forwarding": "the kernel's bridge",
            "buffer": "counted in packets of MTU size, also when they are smaller; without a rate it has no effect",
            **_NOT_HERE,
            "fate": self.unavailable("fate"),
        }

    def counters(self) -> list[dict[str, object]]:
        return [row for port in self.ports for row in qdisc.counters(port)]

    def close(self) -> None:
        """Its parameters were restored: no qdisc of its own is left."""


def open_backend(ports: tuple[str, ...], forwarding: Stations) -> NetemBackend:
    """`forwarding` is not used: the bridge has the addresses."""
    return NetemBackend(ports)
