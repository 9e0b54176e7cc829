# SPDX-License-Identifier: Apache-2.0
"""Runs inside a lab: every program given (an object compiled outside) loads and forwards a packet.

PROGRAMS names objects, each with its layout.json beside it.
"""

from __future__ import annotations

import os
from pathlib import Path

from p4c_ebpf.compile import Compiled
from p4c_ebpf.layout import from_json
from testctl_agent.switch.drivers.driver import Entry, Exact

from plugins.p4c_ebpf.tests.harness import EbpfTarget

PACKET = bytes.fromhex("02000000000202000000000188b5") + bytes(range(86))

for name in os.environ["PROGRAMS"].split(os.pathsep):
    layout = from_json(Path(name).with_name("layout.json").read_text())
    target = EbpfTarget(Compiled(Path(name), layout))
    forward = [one for one in layout.tables if one.name.endswith(".forward")]
    if forward and forward[0].kind == "exact" and len(forward[0].keys) == 1 and forward[0].keys[0].width == 48:
        target.driver.insert(Entry("forward", {forward[0].keys[0].name: Exact(0x020000000002)}, "send", {"port": 7}))
        assert target.inject(1, PACKET) == [(7, PACKET)]
        target.inject(1, PACKET, repeat=2000)
        print(f"{layout.source}: forwards, {target.wall_ns} ns a packet")
    else:
        print(f"{layout.source}: loads")
    target.close()
