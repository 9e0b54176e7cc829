# SPDX-License-Identifier: Apache-2.0
"""Ports of the eBPF switch whose queue manages itself: the lab's qdisc testctl_port models the link in place of the
program, whose port then has neither rate nor delay.  Below it is Linux's qdisc of the kind, if it has one.

Where that knows several flows and drops from the longest queue, the buffer is its limit, in packets of the MTU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from testctl_agent.network import aqm_qdisc, netlink, port_qdisc, qdisc
from testctl_agent.network.port_qdisc import Options
from testctl_agent.spec import aqm
from testctl_agent.spec.aqm import Aqm
from testctl_agent.spec.errors import ApplyError

HANDLE, CHILD_HANDLE = 0x7E580000, 0x7E590000
CHILD_CLASS = HANDLE | 1
ETHERNET_HEADER = 14
SEED = Path("/sys/module/testctl_random/parameters/seed")
"""Restarts the kernel's random numbers, from which a qdisc draws as it is made; a point's traffic restarts them too."""
LIMITED = ("fq_codel", "sfq")
LINK = ("rate", "delay", "buffer", "framing")
"""A managed port's members other than the AQM: whole numbers."""


@dataclass(frozen=True)
class Managed:
    """A port with an AQM; rate in bit/s, delay in ns, buffer and framing in bytes, 0: none."""

    aqm: str
    rate: int = 0
    delay: int = 0
    buffer: int = 0
    framing: int = 0

    @property
    def queue(self) -> Aqm:
        queue = aqm.parse(self.aqm)
        if queue is None:
            raise ValueError(f"want an AQM; got {self.aqm}")
        return queue

    @property
    def options(self) -> bytes:
        link, queue = Options(self.rate, self.delay, self.buffer, self.framing), self.queue
        if queue.is_linuxs:
            return replace(link, kind=port_qdisc.CHILD, seed=queue.seed).pack()
        return replace(link, kind=aqm.OWN[queue.kind], seed=queue.seed, words=queue.kernel_values).pack()

    def child(self, mtu: int) -> bytes:
        """The options of Linux's qdisc; one packet more than its limit waits there, and one is sent."""
        largest = mtu + ETHERNET_HEADER + self.framing
        packets = max(self.buffer // largest - 2, 2) if self.buffer and self.queue.kind in LIMITED else 0
        return aqm_qdisc.options(self.queue, self.rate, packets, largest)


def unavailable(value: str = aqm.NONE) -> str:
    """Why this kernel has no AQM at a port, or not this one; "" if it has."""
    queue = aqm.parse(value)
    kinds = [port_qdisc.KIND, *([queue.kind] if queue and queue.is_linuxs else [])]
    why = next((why for kind in kinds if (why := qdisc.unavailable(kind))), "")
    return f"{why}, which a lab's kernel has" if why else ""


def is_there(device: str) -> bool:
    """Whether our qdisc is the root."""
    root = qdisc.root(device)
    return root is not None and root.kind == port_qdisc.KIND and root.handle == HANDLE


def put(device: str, managed: Managed) -> None:
    """Set the port's qdiscs; the packets that waited are lost."""
    changes = [qdisc.new_qdisc(device, port_qdisc.KIND, HANDLE, qdisc.ROOT, managed.options)]
    if (queue := managed.queue).is_linuxs:
        SEED.write_text(str(queue.seed), encoding="ascii")
        options = managed.child(netlink.mtu(device))
        changes.append(qdisc.new_qdisc(device, queue.kind, CHILD_HANDLE, CHILD_CLASS, options))
    qdisc.make(*changes)


def check(device: str, managed: Managed) -> None:
    """Raises ApplyError unless the port is in force as it was set."""
    root = qdisc.root(device)
    if root is None or root.kind != port_qdisc.KIND or root.options != managed.options:
        got = root.kind if root else "none"
        raise ApplyError(f"port {device}, aqm: want {managed.aqm} as the root qdisc {port_qdisc.KIND}; got {got}")
    below = [q.kind for q in qdisc.qdiscs(device) if q.parent == CHILD_CLASS]
    if managed.queue.is_linuxs and below != [managed.queue.kind]:
        got = ", ".join(below) or "none"
        raise ApplyError(f"port {device}, aqm: want {managed.aqm} below its {port_qdisc.KIND}; got {got}")


def remove(device: str) -> None:
    if is_there(device):
        qdisc.delete_qdisc(device, HANDLE, qdisc.ROOT)
