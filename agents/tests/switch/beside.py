# SPDX-License-Identifier: Apache-2.0
"""The same packets at the same nanoseconds through several ports of a lab (lab_aqm.py), and what became of them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from testctl_agent.network import port_qdisc
from testctl_agent.network.port_qdisc import Options
from testctl_agent.spec import aqm

from agents.tests.switch import traffic

COUNT = 34_000
"""Packets of each mix."""
AS_LINUX = port_qdisc.WORDS - 1
"""The word of an AQM by which it does as Linux's, with Linux's units, roundings and rules."""
Decisions = npt.NDArray[np.int8]
Port = dict[str, Any]


@dataclass(frozen=True)
class Passed:
    """Of each packet of a mix: 0 dropped, 1 passed, 2 marked; and when it arrived, in ns after the first was sent."""

    what: Decisions
    at_ns: npt.NDArray[np.int64]

    def equal(self, other: Passed) -> int:
        return int((self.what == other.what).sum())

    def same(self, other: Passed) -> bool:
        """Every packet treated the same, at the same nanosecond."""
        return self.equal(other) == COUNT and bool((self.at_ns == other.at_ns).all())

    def dropped_of(self, mix: str) -> list[int]:
        """Packets of each flow."""
        flows = np.array([packet[2] for packet in traffic.of_mix(mix, COUNT)])
        return [int((self.what[flows == flow] == 0).sum()) for flow in range(traffic.FLOWS)]

    def delay_ms(self, mix: str, flows: Sequence[int] = range(traffic.FLOWS)) -> float:
        sent = traffic.of_mix(mix, COUNT)
        here = (self.what > 0) & np.isin([packet[2] for packet in sent], flows)
        return float((self.at_ns - np.array([packet[0] for packet in sent]))[here].mean() / 1e6)


Beside = Callable[..., dict[str, dict[str, Passed]]]
"""(name -> port, names of mixes) -> mix -> port's name -> Passed"""


def port(text: str, *, buffer: int = 0, **internal: int) -> Port:
    """As a plan has it by `aqm`.

    buffer    bytes; 0: no limit
    internal  of an AQM of our own: "w9" is the word 9, "as_linux" the last one
    """
    if not internal:
        return {"aqm": text, "buffer": buffer, "child": "", "filter": "", "timer": None}
    found = aqm.parse(text)
    assert found is not None
    words = [*found.kernel_values, *[0] * (port_qdisc.WORDS - len(found.kernel_values))]
    for name, value in internal.items():
        words[AS_LINUX if name == "as_linux" else int(name[1:])] = value
    return options(Options(traffic.RATE, buffer=buffer, kind=aqm.OWN[found.kind], seed=found.seed, words=words))


def options(chosen: Options, child: str = "", action: str = "", timer: tuple[str, int] | None = None) -> Port:
    """timer: of the child's, its function and its period in ns; the port's first packet comes when it expires."""
    fields = [chosen.rate, chosen.delay, chosen.buffer, chosen.framing, chosen.kind, chosen.seed, chosen.words]
    return {"options": fields, "child": child, "filter": action, "timer": timer}


def linux(words: str, *, seed: int = 1, timer: tuple[str, int] | None = None) -> Port:
    """A qdisc of Linux's, by the words of tc; seed: of what it draws at random."""
    return options(Options(traffic.RATE, kind=port_qdisc.CHILD, seed=seed), words, timer=timer)


def run(in_lab: Callable[..., str], where: Path, ports: dict[str, Port], mixes: Sequence[str]) -> Any:
    """mix -> port's name -> Passed"""
    where.mkdir()
    script = Path(__file__).with_name("lab_aqm.py").read_text(encoding="utf-8")
    text = in_lab(
        script, timeout_s=600.0, TESTCTL_OUT=str(where), TESTCTL_COUNT=str(COUNT),
        TESTCTL_MIXES=",".join(mixes), TESTCTL_PORTS=json.dumps(ports),
    )  # fmt: skip
    found: dict[str, dict[str, Passed]] = {}
    for mix, named in json.loads(text).items():
        for name, one in named.items():
            assert one["sent"] == COUNT
            passed = _passed(where / f"{mix}-{name}" / "capture.pcap", one["start_ns"])
            found.setdefault(mix, {})[name] = passed
            counts = one["counters"][port_qdisc.KIND]["extra"]
            lost = counts["dropped"] + counts["full"] + one["counters"].get("clsact", {}).get("drops", 0)
            assert (counts["marked"], lost) == ((passed.what == 2).sum(), (passed.what == 0).sum())
            row = one["counters"][port_qdisc.KIND]
            assert (row["qlen"], row["backlog"], row["drops"]) == (0, 0, counts["dropped"] + counts["full"])
            print(mix, name, "dropped", (passed.what == 0).sum(), "marked", (passed.what == 2).sum())
    return found


def _passed(path: Path, start_ns: int) -> Passed:
    what, at_ns = np.zeros(COUNT, np.int8), np.zeros(COUNT, np.int64)
    data, at = path.read_bytes(), 24
    while at < len(data):
        seconds, ns, kept, _ = struct.unpack_from("<4I", data, at)
        frame = data[at + 16 : at + 16 + kept]
        at += 16 + kept
        if frame[12:14] == b"\x08\x00" and frame[23] == 17:
            number = struct.unpack_from("=I", frame, 42)[0]
            what[number] = 2 if frame[15] & 3 == 3 else 1
            at_ns[number] = seconds * 10**9 + ns - start_ns
    return Passed(what, at_ns)
