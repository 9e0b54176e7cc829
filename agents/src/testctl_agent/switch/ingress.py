# SPDX-License-Identifier: Apache-2.0
"""A program at the clsact ingress of a switch's device, known by the name of its filter."""

from __future__ import annotations

from testctl_agent.network import qdisc
from testctl_agent.spec.errors import TestbedError


def program(device: str, name: str) -> int | None:
    """The id of the program attached under this name; None when there is none."""
    if not any(q.kind == "clsact" for q in qdisc.qdiscs(device)):
        return None
    filters = map(qdisc.bpf_filter, qdisc.filters(device, qdisc.INGRESS))
    return next((number for own, number in filters if own == name), None)


def attach(device: str, *programs: tuple[str, int]) -> None:
    """Put programs there: (the filter's name, file descriptor), in their order.  TestbedError when somebody else's
    clsact is."""
    if any(q.parent == qdisc.CLSACT for q in qdisc.qdiscs(device)):
        raise TestbedError(f"device {device}: want no clsact or ingress qdisc; got one that testctl did not make")
    qdisc.put_clsact(device, [(name, qdisc.INGRESS, fd) for name, fd in programs])


def detach(device: str, name: str) -> None:
    """Remove the program, also one of an agent that died, if it is there."""
    if program(device, name) is not None:
        qdisc.delete_qdisc(device, qdisc.CLSACT_HANDLE, qdisc.CLSACT)
