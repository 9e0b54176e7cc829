# SPDX-License-Identifier: Apache-2.0
"""Queues that manage themselves: how they are written, and what they do beside Linux's own qdiscs (lab_aqm.py)."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from testctl_agent.network import port_qdisc
from testctl_agent.network.port_qdisc import Options
from testctl_agent.spec import aqm

from agents.tests.switch import traffic

KERNEL = Path(__file__).parents[3] / "lab" / "kernel"
COUNT = 34_000
"""Packets of each of three mixes."""
FULL = {
    "codel target 5ms interval 100ms": ("codel", (5_000_000, 100_000_000, 0)),
    "codel interval 50ms ecn target 1ms": ("codel target 1ms interval 50ms ecn", (1_000_000, 50_000_000, 1)),
    "pie seed 4": (
        "pie qdelay_ref 15ms t_update 15ms alpha 0.125 beta 1.25 max_burst 150ms mark_ecnth 10% seed 4",
        (15_000_000, 15_000_000, 125, 1250, 150_000_000, 0, 2**56 // 10),
    ),
    "red min 30kB  max 90kB max_p 2%": (
        "red min 30kB max 90kB max_p 2% wq 9 seed 1",
        (30_000, 90_000, 85_899_345, 9, 0, 0),
    ),
    "policer burst 15kB rate 10mbit": ("policer rate 10mbit burst 15kB", (10_000_000, 15_000)),
    "fq_codel ecn": (
        "fq_codel target 5ms interval 100ms ecn flows 1024 quantum 1.514kB seed 1",
        (5_000_000, 100_000_000, 1, 1024, 1514),
    ),
    "fifo": ("fifo", ()),
}


@pytest.mark.parametrize(("text", "canonical", "words"), [(text, *full) for text, full in FULL.items()])
def test_reads_an_aqm(text: str, canonical: str, words: tuple[int, ...]) -> None:
    found = aqm.parse(text)
    assert found is not None
    assert found.words == words
    if canonical != "codel":
        assert str(found) == canonical
    assert aqm.parse(aqm.canonical(text)) == found
    assert aqm.canonical("none") == "none"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "want an AQM such as"),
        ("blue", "want an AQM such as"),
        ("step", "want a threshold as the parameter ecn_threshold"),
        ("none ecn", "want an AQM such as"),
        ("codel target 100ms", "want target less than interval; got target 100ms, interval 100ms"),
        ("fq_codel interval 4ms", "want target less than interval"),
        ("codel target", "codel, target: want a time"),
        ("codel target 500ns", "codel, target: want from 1us to 4s; got 500ns"),
        ("codel interval 5s", "codel, interval: want from 1us to 4s; got 5s"),
        ("codel ecn ecn", "want ecn once"),
        ("codel min 5kB", "want codel with target, interval, ecn; got 'min'"),
        ("red max 5kB", "red: want its min; got none"),
        ("red min 9kB max 5kB", "want min less than max; got min 9kB, max 5kB"),
        ("red min 5kB max 5kB", "want min less than max"),
        ("red min 0B max 5kB", "red, min: want from 1B"),
        ("red min 5kB max 9kB max_p 0%", "red, max_p: want from 0.01% to 100%"),
        ("red min 5kB max 9kB max_p 0.1", "want a share such as 10%"),
        ("red min 5kB max 9kB wq 31", "red, wq: want from 0 to 30"),
        ("policer rate 1mbit", "policer: want its burst; got none"),
        ("policer burst 9kB", "policer: want its rate; got none"),
        ("pie alpha x", "pie, alpha: want a number"),
        ("pie alpha 0.0001", "pie, alpha: want a number of at most 3 decimals"),
        ("pie seed -1", "pie, seed: want a number"),
        ("pie qdelay_ref 0ms", "pie, qdelay_ref: want from 1us"),
        ("fq_codel flows 0", "fq_codel, flows: want from 1 to 1024"),
        ("pie alpha 1e999999999", "pie, alpha: want"),
        ("pie alpha NaN", "pie, alpha: want a number"),
    ],
)
def test_refuses_what_contradicts_itself(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        aqm.parse(text)


def _enum(file: str, prefix: str) -> list[str]:
    """The names of a header's first anonymous enum, without their prefix."""
    match = re.search(r"^enum \{ (.*) \};$", (KERNEL / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert match
    first = match[1].replace(" = CODEL_ECN + 1", "")
    return [name.removeprefix(prefix).lower() for name in first.split(", ")]


def test_the_kernels_words_are_those_of_the_grammar() -> None:
    text = (KERNEL / "lab_port.h").read_text(encoding="utf-8")
    kinds = re.search(r"enum aqm_kind \{ (.*) \};", text)
    assert kinds
    numbers = {name.removeprefix("AQM_").lower(): number for number, name in enumerate(kinds[1].split(", "))}
    assert {kind: number for kind, (number, _) in aqm.KINDS.items()} == {
        kind: number for kind, number in numbers.items() if kind not in ("child", "kinds")
    }
    assert numbers["child"] == port_qdisc.CHILD
    for kind in aqm.KINDS.keys() - {"fifo"}:
        words = [one.name for one in aqm.KINDS[kind][1] if one.name != aqm.SEED]
        found = _enum(f"aqm_{kind}.h", f"{kind.upper()}_")
        assert (_enum("aqm_codel.h", "CODEL_") if kind == "fq_codel" else []) + found == words
    assert len(Options(1, 2, 3, 4, 5, 6, (7,)).pack()) == 8 * (6 + 12)


Decisions = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Passed:
    """Of each packet of a mix: 0 dropped, 1 passed, 2 marked; and when it arrived, in ns after the first was sent."""

    what: Decisions
    at_ns: npt.NDArray[np.int64]

    def equal(self, other: Passed) -> int:
        return int((self.what == other.what).sum())

    def delay_ms(self, mix: str) -> float:
        sent = np.array([packet[0] for packet in traffic.MIXES[mix](COUNT)])
        here = self.what > 0
        return float((self.at_ns - sent)[here].mean() / 1e6)


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


def _port(text: str, coarse: bool = False) -> dict[str, Any]:
    found = aqm.parse(text)
    assert found is not None
    words = (*found.words, *[0] * (11 - len(found.words)), int(coarse))
    return _options(Options(traffic.RATE, kind=found.number, seed=found.seed, words=words))


def _options(options: Options, child: str = "", action: str = "") -> dict[str, Any]:
    fields = [options.rate, options.delay, options.buffer, options.framing, options.kind, options.seed, options.words]
    return {"options": fields, "child": child, "filter": action}


def _linux(words: str) -> dict[str, Any]:
    return _options(Options(traffic.RATE, kind=port_qdisc.CHILD), words)


Beside = Callable[[dict[str, dict[str, Any]]], dict[str, dict[str, Passed]]]


@pytest.fixture
def beside(in_lab: Callable[..., str], tmp_path: Path) -> Beside:
    """What became of the packets of every mix at ports: mix -> port's name -> Passed."""

    def run(ports: dict[str, dict[str, Any]]) -> dict[str, dict[str, Passed]]:
        where = tmp_path / "out"
        where.mkdir()
        script = Path(__file__).with_name("lab_aqm.py").read_text(encoding="utf-8")
        text = in_lab(
            script, timeout_s=600.0, TESTCTL_OUT=str(where), TESTCTL_COUNT=str(COUNT),
            TESTCTL_MIXES=",".join(traffic.MIXES), TESTCTL_PORTS=json.dumps(ports),
        )  # fmt: skip
        found: dict[str, dict[str, Passed]] = {}
        for mix, named in json.loads(text).items():
            for name, one in named.items():
                assert one["sent"] == COUNT
                passed = _passed(where / f"{mix}-{name}" / "capture.pcap", one["start_ns"])
                found.setdefault(mix, {})[name] = passed
                if not ports[name]["child"]:
                    counts = one["counters"][port_qdisc.KIND]["extra"]
                    lost = counts["dropped"] + (one["counters"].get("clsact", {}).get("drops", 0))
                    assert (counts["marked"], lost) == ((passed.what == 2).sum(), (passed.what == 0).sum())
                print(mix, name, "dropped", (passed.what == 0).sum(), "marked", (passed.what == 2).sum())
        return found

    return run


@pytest.mark.lab
@pytest.mark.parametrize(
    ("text", "words", "least"),
    [
        ("codel target 5ms interval 100ms ecn", "codel limit 100000 target 5ms interval 100ms ecn", 0.80),
        (
            "fq_codel target 5ms interval 100ms ecn",
            "fq_codel limit 100000 memory_limit 1000000000 flows 1024 quantum 1514 target 5ms interval 100ms ecn",
            0.80,
        ),
    ],
    ids=["codel", "fq_codel"],
)
def test_is_linuxs_but_for_what_is_known(beside: Beside, text: str, words: str, least: float) -> None:
    """With Linux's units, roots and rules every packet is treated the same, at the same nanosecond."""
    found = beside({"ours": _port(text), "coarse": _port(text, coarse=True), "linux": _linux(words)})
    for mix, named in found.items():
        assert named["coarse"].equal(named["linux"]) == COUNT, mix
        assert (named["coarse"].at_ns == named["linux"].at_ns).all(), mix
        equal = named["ours"].equal(named["linux"])
        print(mix, "equal", equal, "of", COUNT)
        assert equal >= least * COUNT, mix
        acted, theirs = ((named[name].what != 1).sum() for name in ("ours", "linux"))
        assert theirs > 500, mix
        assert acted == pytest.approx(theirs, rel=0.12), mix
        assert named["ours"].delay_ms(mix) == pytest.approx(named["linux"].delay_ms(mix), rel=0.12), mix


@pytest.mark.lab
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pie ecn", "pie limit 100000 target 15ms tupdate 15ms ecn"),
        (
            "red min 30kB max 90kB max_p 10% wq 9 ecn",
            "red limit 4000000 min 30000 max 90000 avpkt 1514 burst 120 bandwidth 10mbit probability 0.1 ecn harddrop",
        ),
    ],
    ids=["pie", "red"],
)
def test_has_linuxs_distributions(beside: Beside, text: str, words: str) -> None:
    """What is drawn at random: as many packets are dropped or marked, and the others wait as long."""
    found = aqm.parse(text)
    assert found is not None
    other = str(replace(found, values=(*found.values[:-1], 2)))
    for mix, named in beside({"ours": _port(text), "seed": _port(other), "linux": _linux(words)}).items():
        assert named["ours"].equal(named["seed"]) < COUNT, mix
        print(mix, "equal", named["ours"].equal(named["linux"]), "of", COUNT)
        for name in ("ours", "seed"):
            acted, theirs = ((named[one].what != 1).sum() for one in (name, "linux"))
            assert acted == pytest.approx(theirs, rel=0.15), mix
            delays = named[name].delay_ms(mix), named["linux"].delay_ms(mix)
            print(mix, name, "delay in ms", *delays)
            assert delays[0] == pytest.approx(delays[1], rel=0.15), mix


@pytest.mark.lab
def test_polices_as_linuxs_action(beside: Beside) -> None:
    """Linux's tokens are times in units of 64 ns: the rest is equal."""
    fifo = Options(traffic.RATE)
    ports = {
        "ours": _port("policer rate 8mbit burst 30kB"),
        "linux": _options(fifo, action="police rate 8mbit burst 30000 conform-exceed drop/pipe"),
    }
    for mix, named in beside(ports).items():
        print(mix, "equal", named["ours"].equal(named["linux"]), "of", COUNT)
        assert named["ours"].equal(named["linux"]) >= COUNT - 20, mix
        assert (named["ours"].what == 0).sum() > 500, mix
