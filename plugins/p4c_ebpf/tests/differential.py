# SPDX-License-Identifier: Apache-2.0
"""Random packets through random rows, on eBPF and on BMv2: the same ports, bytes and counts must come out.

    python plugins/p4c_ebpf/tests/differential.py --packets 2000 --seed 1 [PROGRAM …]

Every program of plugins/p4c_ebpf/tests/programs and the testbed's is compared, in rounds of a few hundred packets with
rows of their own.  Needs root (BPF) and simple_switch_grpc.  Exit 1 when something differed; the first
difference of each program is shown in full, with the rows and packets that led to it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Driver, Entry
from testctl_bmv2 import p4info, simple_switch

sys.path.insert(0, str(Path(__file__).parents[3]))  # as a script, too
from plugins.p4c_ebpf.tests.bmv2_target import Bmv2Target
from plugins.p4c_ebpf.tests.harness import EbpfTarget
from plugins.p4c_ebpf.tests.program_files import Program, programs
from plugins.p4c_ebpf.tests.random_packets import Maker
from plugins.p4c_ebpf.tests.random_rows import GROUPS, PORTS, Values, defaults, rows

VLAN, IPV6 = b"\x81\x00", b"\x86\xdd"
ROUND = 100
"""Packets between two sets of rows."""
SHORTEST = 18
"""Bytes of a frame that is compared: BMv2 sends shorter and even empty ones, the kernel does not cut a copy to less."""
TIMED = {"queue": slice(22, 26)}
"""Bytes of what programs send that are a time BMv2 took."""
LEFT_OUT = {
    "again": "BMv2 lets a packet come again without end",
    "draws": "BMv2 draws other random numbers",
    "asserts": "BMv2 ends at a false assertion",
    "meters": "BMv2 reads beyond the end of an array of meters",
    "records": "BMv2 reads beyond the end of a stack",
}
"""Programs that are not compared, and why."""
_CELLS = 64
"""Of a counter or register, how many are compared from its begin."""

Sent = tuple[int, bytes]


class Target(Protocol):
    """What both targets are."""

    @property
    def driver(self) -> Driver: ...

    def inject(self, port: int, packet: bytes) -> list[Sent]: ...


@dataclass(frozen=True)
class Result:
    """Of one program: packets compared, those that came out somewhere, cells compared; the first difference or "";
    packets of IPv6 that came out."""

    packets: int
    out: int
    cells: int
    difference: str = ""
    ipv6: int = 0


def fill(target: Target, entries: Sequence[Entry], others: Sequence[tuple[str, str, dict[str, int]]]) -> list[str]:
    """Put the rows in; what was refused of them, in words that do not name the target."""
    refused = []
    for group in GROUPS:
        target.driver.multicast(group, members(group))
    for table, action, params in others:
        target.driver.set_default(table, action, params)
    for entry in entries:
        try:
            target.driver.insert(entry)
        except DriverError:
            refused.append(f"{entry}")
    return refused


def members(group: int) -> tuple[int, ...]:
    """Group n has all ports but n."""
    return tuple(port for port in PORTS if port != group)


def empty(target: Target, info: p4info.Info) -> None:
    for table in info.tables.values():
        if not table.constant and table.keys and not table.shared:
            target.driver.clear(table.name)
            if table.defaults:
                target.driver.set_default(table.name, "", {})


def known(program: Program, sent: Sequence[Sent]) -> list[Sent]:
    """What came out, by port, as far as both can have it: eBPF has no other ports."""
    timed = TIMED.get(program.name, slice(0, 0))
    kept = [(port, data) for port, data in sent if port in PORTS and len(data) >= SHORTEST]
    blank = [(port, data[: timed.start] + bytes(len(data[timed])) + data[timed.stop :]) for port, data in kept]
    return sorted(blank, key=lambda one: one[0])


def cells(info: p4info.Info, driver: Driver, entries: Sequence[Entry]) -> Iterator[tuple[str, object]]:
    """Everything a program counts: (what, value)."""
    for counter in info.counters.values():
        for index in range(min(counter.size, _CELLS)):
            yield f"counter {counter.name}[{index}]", driver.counter(counter.name, index)
    for register in info.registers.values():
        for index, value in enumerate(driver.register(register.name)[:_CELLS]):
            yield f"register {register.name}[{index}]", value
    for entry in entries:
        if info.table(entry.table).direct:
            yield f"direct counter of {entry}", driver.direct(entry)


def compare(program: Program, packets: int, seed: int) -> Result:
    """Both targets with the same rows and packets; stops at the first difference."""
    info = p4info.read(program.info)
    random = Random(f"{program.name} {seed}")
    parsed = json.loads(program.json.read_text(encoding="utf-8"))
    done = out = counted = six = 0
    with ExitStack() as stack:
        ebpf = stack.enter_context(closing(EbpfTarget(program.json)))
        bmv2 = stack.enter_context(Bmv2Target(program.json, program.info))
        while done < packets:
            values = Values(random)
            entries, others, maker = rows(info, values), defaults(info, values), Maker(parsed, values)
            first, second = (fill(target, entries, others) for target in (ebpf, bmv2))
            if first != second:
                return Result(done, out, counted, f"rows refused by eBPF: {first}\nby BMv2: {second}")
            taken = [entry for entry in entries if f"{entry}" not in first]
            history: list[Sent] = []
            for _ in range(min(ROUND, packets - done)):
                history.append((random.choice(PORTS), maker.packet()))
                got, want = (known(program, target.inject(*history[-1])) for target in (ebpf, bmv2))
                if got != want:
                    return Result(done, out, counted, _shown(taken, others, history, got, want))
                done += 1
                out += bool(want)
                six += any(is_ipv6(data) for _, data in want)
            for (what, mine), (_, other) in zip(
                cells(info, ebpf.driver, taken), cells(info, bmv2.driver, taken), strict=True
            ):
                if mine != other:
                    return Result(done, out, counted, f"{what}: eBPF {mine}, BMv2 {other}")
                counted += 1
            for target in (ebpf, bmv2):
                empty(target, info)
    return Result(done, out, counted, ipv6=six)


def is_ipv6(frame: bytes) -> bool:
    """Whether a frame has IPv6, perhaps behind a VLAN tag."""
    return frame[16 if frame[12:14] == VLAN else 12 :][:2] == IPV6


def _shown(
    entries: Sequence[Entry],
    others: Sequence[tuple[str, str, dict[str, int]]],
    history: Sequence[Sent],
    got: Sequence[Sent],
    want: Sequence[Sent],
) -> str:
    lines = ["rows:", *(f"  {entry}" for entry in entries), "defaults:", *(f"  {one}" for one in others)]
    lines += [f"packet {len(history)} of the round, at port {history[-1][0]}:", f"  {history[-1][1].hex()}"]
    for who, sent in (("eBPF", got), ("BMv2", want)):
        lines += [f"out of {who}:", *([f"  port {port}: {data.hex()}" for port, data in sent] or ["  nothing"])]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--packets", type=int, default=2000, help="of each program (2000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("programs", nargs="*", help="names; none: all")
    asked = parser.parse_args()
    if reason := simple_switch.unavailable():
        parser.error(reason)
    chosen = [one for one in programs() if one.name not in LEFT_OUT]
    chosen = [one for one in chosen if not asked.programs or one.name in asked.programs]
    total, differing = 0, []
    for program in chosen:
        result = compare(program, asked.packets, asked.seed)
        total += result.packets
        print(
            f"{program.name:24} {result.packets:7} packets, {result.out:7} sent on ({result.ipv6} IPv6), "
            f"{result.cells:6} cells",
            flush=True,
        )
        if result.difference:
            differing.append(program.name)
            print(f"{program.name} DIFFERS:\n{result.difference}")
    print(f"{total} packets through {len(chosen)} programs; differing: {', '.join(differing) or 'none'}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
