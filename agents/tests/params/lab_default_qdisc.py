# SPDX-License-Identifier: Apache-2.0
"""Runs inside a lab: the kernel's default qdisc is as before when an MTU and a qdisc are restored, in any order."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

from testctl_agent.network import qdisc
from testctl_agent.params import link_mtu
from testctl_agent.params.entity import Entity

DEVICE, OURS = "tap0", 0x7E570000
SWITCH = Entity("s1", "switch", (DEVICE,))


def shown() -> list[tuple[str, int, bytes]]:
    return [(q.kind, q.handle, q.options) for q in qdisc.qdiscs(DEVICE)]


def set_mtu(value: int) -> None:
    link_mtu.apply(SWITCH, "mtu", value)


def main() -> None:
    Path("/proc/sys/net/core/default_qdisc").write_text("fq_codel", encoding="ascii")
    for words in (f"tuntap add dev {DEVICE} mode tap", f"link set {DEVICE} up"):
        subprocess.run(["ip", *words.split()], check=True)
    before = shown()
    assert [kind for kind, _, _ in before] == ["fq_codel"], before
    changes = {
        "mtu": (lambda: set_mtu(1400), lambda: set_mtu(1500)),
        "qdisc": (
            lambda: qdisc.put_qdisc(DEVICE, "bfifo", OURS, qdisc.ROOT, qdisc.bfifo_options(100_000)),
            lambda: qdisc.delete_qdisc(DEVICE, OURS, qdisc.ROOT),
        ),
    }
    for there, back in itertools.product(itertools.permutations(changes), repeat=2):
        for name in there:
            changes[name][0]()
        for name in back:
            changes[name][1]()
        assert shown() == before, (there, back)
    qdisc.put_qdisc(DEVICE, "bfifo", OURS, qdisc.ROOT, qdisc.bfifo_options(100_000))
    theirs = shown()
    set_mtu(1400)
    assert shown() == theirs, "somebody's own qdisc is left alone"
    print("the default qdisc is as before")


main()
