# SPDX-License-Identifier: Apache-2.0
"""Ports of the eBPF switch whose queue manages itself: the lab's qdisc testctl_port models the link in place of the
program, whose port then has neither rate nor delay."""

from __future__ import annotations

from dataclasses import dataclass, replace

from testctl_agent.network import port_qdisc, qdisc
from testctl_agent.network.port_qdisc import Options
from testctl_agent.spec import aqm
from testctl_agent.spec.errors import ApplyError

HANDLE = 0x7E580000
LINK = ("rate", "delay", "buffer", "framing")
"""What it has of a port beside its AQM: whole numbers."""


@dataclass(frozen=True)
class Managed:
    """A port with an AQM; rate in bit/s, delay in ns, buffer and framing in bytes, 0: none."""

    aqm: str
    rate: int = 0
    delay: int = 0
    buffer: int = 0
    framing: int = 0

    def with_link(self, what: str, value: int) -> Managed:
        """The same with another value of one of LINK."""
        numbers: dict[str, int] = {name: getattr(self, name) for name in LINK} | {what: value}
        return Managed(self.aqm, *(numbers[name] for name in LINK))

    @property
    def options(self) -> bytes:
        found = aqm.parse(self.aqm)
        if found is None:
            raise ValueError(f"want an AQM; got {self.aqm}")
        link = Options(self.rate, self.delay, self.buffer, self.framing)
        return replace(link, kind=found.number, seed=found.seed, words=found.words).pack()


def unavailable() -> str:
    """Why this kernel has no AQM at a port; "" if it has."""
    why = qdisc.unavailable(port_qdisc.KIND)
    return f"{why}, which a lab's kernel has" if why else ""


def is_there(device: str) -> bool:
    """Whether our qdisc is the root."""
    root = qdisc.root(device)
    return root is not None and root.kind == port_qdisc.KIND and root.handle == HANDLE


def put(device: str, managed: Managed) -> None:
    """The port is so from now on; what waited is lost."""
    qdisc.put_qdisc(device, port_qdisc.KIND, HANDLE, qdisc.ROOT, managed.options)


def check(device: str, managed: Managed) -> None:
    """Raises ApplyError unless the port is in force as it was set."""
    root = qdisc.root(device)
    if root is None or root.kind != port_qdisc.KIND or root.options != managed.options:
        got = root.kind if root else "none"
        raise ApplyError(f"port {device}, aqm: want {managed.aqm} as the root qdisc {port_qdisc.KIND}; got {got}")


def remove(device: str) -> None:
    if is_there(device):
        qdisc.delete_qdisc(device, HANDLE, qdisc.ROOT)
