# SPDX-License-Identifier: Apache-2.0
"""Queues that manage themselves: how they are written, and what they do with packets in a lab (lab_aqm.py)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from testctl_agent.network import port_qdisc
from testctl_agent.network.port_qdisc import Options
from testctl_agent.spec import aqm

from agents.tests.switch import beside as sent
from agents.tests.switch import traffic
from agents.tests.switch.aqm_model import Port, Red
from agents.tests.switch.beside import COUNT, Beside
from agents.tests.switch.dualpi2_model import DualPi2

pytestmark = pytest.mark.long

KERNEL = Path(__file__).parents[3] / "lab" / "kernel"
MIXES = tuple(traffic.MIXES)
L4S = tuple(traffic.L4S + mix for mix in MIXES)
FULL = {
    "codel target 5ms interval 100ms": ("codel", (5_000_000, 100_000_000, 0)),
    "codel interval 50ms ecn target 1ms": ("codel target 1ms interval 50ms ecn", (1_000_000, 50_000_000, 1)),
    "pie seed 4": (
        "pie qdelay_ref 15ms t_update 15ms alpha 0.125 beta 1.25 max_burst 150ms mark_ecnth 10% seed 4",
        (15_000_000, 15_000_000, 2, 20, 150_000_000, 0, 10),
    ),
    "red min 30kB  max 90kB max_p 2%": (
        "red min 30kB max 90kB max_p 2% wq 9 seed 1",
        (30_000, 90_000, 85_899_345, 9, 0, 0),
    ),
    "fq_pie mark_ecnth 20% flows 9": (
        "fq_pie qdelay_ref 15ms t_update 15ms alpha 0.125 beta 1.25 mark_ecnth 20% flows 9 quantum 1.514kB seed 1",
        (15_000_000, 15_000_000, 2, 20, 0, 20, 9, 1514),
    ),
    "cake rtt 20ms": ("cake rtt 20ms seed 1", (20_000_000,)),
    "sfq": ("sfq flows 127 quantum 1.514kB seed 1", (127, 1514)),
    "policer burst 15kB rate 10mbit": ("policer rate 10mbit burst 15kB", (10_000_000, 15_000)),
    "fq_codel ecn": (
        "fq_codel target 5ms interval 100ms ecn flows 1024 quantum 1.514kB seed 1",
        (5_000_000, 100_000_000, 1, 1024, 1514),
    ),
    "dualpi2 weight 12.5% k 1": (
        "dualpi2 target 15ms tupdate 15ms alpha 0.15 beta 3 k 1 min_th 800us range 400us th_len 1 weight 12.5% seed 1",
        (15_000_000, 15_000_000, 150, 3000, 1, 800_000, 400_000, 1, 1250),
    ),
    "fifo": ("fifo", ()),
}


@pytest.mark.parametrize(("text", "canonical", "words"), [(text, *full) for text, full in FULL.items()])
def test_reads_an_aqm(text: str, canonical: str, words: tuple[int, ...]) -> None:
    found = aqm.parse(text)
    assert found is not None
    assert found.kernel_values == words
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
        ("pie alpha 0.00001", "pie, alpha: want a number of at most 4 decimals"),
        ("pie alpha 0.1", "pie, alpha: want a multiple of 0.0625, as Linux counts; got 0.1"),
        ("pie max_burst 20ms", "pie, max_burst: want 150ms, a constant of Linux's; got 20ms"),
        ("pie mark_ecnth 20%", "pie, mark_ecnth: want 10%, a constant of Linux's; got 20%"),
        ("pie t_update 1500us", "pie, t_update: want a multiple of 1ms, as Linux counts; got 1500us"),
        ("codel target 5500ns", "codel, target: want a multiple of 1us, as Linux counts; got 5500ns"),
        ("red min 9kB max 5MB", "red: want max at most 4194.303kB with wq 9; got 5MB"),
        ("fq_codel quantum 200", "fq_codel, quantum: want from 256B to 1048.576kB; got 200"),
        ("pie seed -1", "pie, seed: want a number"),
        ("pie qdelay_ref 0ms", "pie, qdelay_ref: want from 1us"),
        ("fq_codel flows 0", "fq_codel, flows: want from 1 to 1024"),
        ("pie alpha 1e999999999", "pie, alpha: want"),
        ("pie alpha NaN", "pie, alpha: want a number"),
        ("dualpi2 ecn", "want dualpi2 with target, tupdate,"),
        ("dualpi2 k 0", "dualpi2, k: want from 1 to 16; got 0"),
        ("dualpi2 weight 60%", "dualpi2, weight: want from 0.01% to 50%; got 60%"),
        ("dualpi2 target 10ms", "want tupdate at most target; got tupdate 15ms, target 10ms"),
        (
            "dualpi2 min_th 14ms range 1ms",
            "want min_th and range together less than target; got min_th 14ms, range 1ms",
        ),
    ],
)
def test_refuses_what_contradicts_itself(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        aqm.parse(text)


def _enum(file: str, prefix: str) -> list[str]:
    """The names of a header's first anonymous enum, without their prefix."""
    match = re.search(r"^enum \{ ([^}]*) \};$", (KERNEL / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert match
    return [name.removeprefix(prefix).lower() for name in re.split(r",\s+", match[1])]


def test_the_kernels_words_are_those_of_the_grammar() -> None:
    text = (KERNEL / "lab_port.h").read_text(encoding="utf-8")
    kinds = re.search(r"enum aqm_kind \{ (.*) \};", text)
    assert kinds
    numbers = {name.removeprefix("AQM_").lower(): number for number, name in enumerate(kinds[1].split(", "))}
    assert aqm.OWN | {"child": port_qdisc.CHILD, "kinds": len(aqm.OWN) + 1} == numbers
    for kind in aqm.OWN.keys() - {"fifo"}:
        words = [one.name for one in aqm.KINDS[kind] if one.name != aqm.SEED]
        assert _enum(f"aqm_{kind}.h", f"{kind.upper()}_") == words
    assert len(Options(1, 2, 3, 4, 5, 6, (7,)).pack()) == 8 * (6 + 12)


@pytest.fixture
def beside(in_lab: Callable[..., str], tmp_path: Path) -> Beside:
    """What became of the packets of mixes at ports: mix -> port's name -> Passed."""
    return lambda ports, mixes=MIXES: sent.run(in_lab, tmp_path / "out", ports, mixes)


LINUXS = {
    "codel ecn": "codel limit 100000 target 5ms interval 100ms ecn",
    "fq_codel ecn": "fq_codel limit 100000 memory_limit 1000000000 flows 1024 quantum 1514 target 5ms ecn",
    "cake rtt 100ms": "cake unlimited memlimit 1000000000 no-split-gso",
}
DRAWN = {
    "pie ecn": "pie limit 100000 target 15ms tupdate 15ms ecn",
    "fq_pie qdelay_ref 5ms ecn": "fq_pie limit 100000 flows 1024 quantum 1514 target 5ms tupdate 15ms ecn",
    "red min 30kB max 90kB ecn": "",
}


@pytest.mark.lab
@pytest.mark.parametrize("text", LINUXS)
def test_is_the_qdisc_as_tc_makes_it(beside: Beside, text: str) -> None:
    """Every packet is treated the same, at the same nanosecond, whatever its buffer is as long as it never fills."""
    ports = {"ours": sent.port(text), "roomy": sent.port(text, buffer=2**30), "linux": sent.linux(LINUXS[text])}
    for mix, named in beside(ports).items():
        assert named["ours"].same(named["linux"]), mix
        assert named["roomy"].same(named["linux"]), mix
        assert (named["ours"].what != 1).sum() > 500, mix


def _alike(mix: str, ours: sent.Passed, linux: sent.Passed, bound: float) -> None:
    """As many packets are dropped or marked, and the others wait as long."""
    acted, theirs = ((one.what != 1).sum() for one in (ours, linux))
    delays = ours.delay_ms(mix), linux.delay_ms(mix)
    print(mix, "equal", ours.equal(linux), "dropped or marked", acted, theirs, "delay in ms", *delays)
    assert theirs > 500, mix
    assert acted == pytest.approx(theirs, rel=bound), mix
    assert delays[0] == pytest.approx(delays[1], rel=bound), mix


@pytest.mark.lab
@pytest.mark.parametrize("kind", ["fq_codel", "sfq"])
def test_the_longest_queue_pays_for_a_full_buffer(beside: Beside, kind: str) -> None:
    """A flow that sends single packets beside others that fill the buffer loses none, as it does of a tail drop."""
    ports = {"fair": sent.port(kind, buffer=90_000), "fifo": sent.port("fifo", buffer=90_000)}
    (named,) = beside(ports, (traffic.SPARSE,)).values()
    for name, one in named.items():
        lost = one.dropped_of(traffic.SPARSE)
        print(name, "dropped of each flow", lost)
        assert sum(lost) > 2000
        assert (lost[-1] > 0) == (name == "fifo")
        held = one.at_ns - np.array([packet[0] for packet in traffic.of_mix(traffic.SPARSE, COUNT)])
        assert held[one.what > 0][:1000].max() <= 90_000 * 8 * 10**9 // traffic.RATE


def _other_seed(text: str) -> str:
    found = aqm.parse(text)
    assert found is not None
    return str(replace(found, values=(*found.values[:-1], 2)))


@pytest.mark.lab
@pytest.mark.parametrize("text", DRAWN)
def test_what_is_drawn_at_random_is_drawn_from_the_seed(beside: Beside, text: str) -> None:
    """With another one other packets, but as many, are dropped or marked, and the others wait as long."""
    ports = {"ours": sent.port(text), "seed": sent.port(_other_seed(text))}
    if DRAWN[text]:
        ports["linux"] = sent.linux(DRAWN[text])
    for mix, named in beside(ports).items():
        assert named["ours"].equal(named["seed"]) < COUNT, mix
        for one in named.values():
            _alike(mix, one, named["ours"], 0.15)


TUPDATE = 16_000_000


@pytest.mark.lab
def test_dualpi2_is_linuxs_but_for_what_is_known(beside: Beside, kernel: Path) -> None:
    """With Linux's numbers, its step and its way to draw every packet is treated the same, at the same nanosecond."""
    if b"CONFIG_NET_SCH_DUALPI2=y" not in (kernel.parent / "config").read_bytes():
        pytest.skip("this kernel has no dualpi2: it came with 6.17")
    text = "dualpi2 tupdate 15ms min_th 1ms range 0s alpha 0.16 beta 3.2"
    ports = {
        "ours": sent.port(text, w1=TUPDATE),
        "as_linux": sent.port(text, as_linux=1, w1=TUPDATE, w2=41, w3=819),
        "linux": sent.linux("dualpi2", timer=("dualpi2_timer", TUPDATE)),
    }
    for mix, named in beside(ports, L4S).items():
        assert named["as_linux"].same(named["linux"]), mix
        _alike(mix, named["ours"], named["linux"], 0.25)
        for flows in (traffic.SCALABLE, traffic.ECT0, traffic.NOT_ECT):
            delays = [named[name].delay_ms(mix, flows) for name in ("ours", "linux")]
            print(mix, flows, "delay in ms", *delays)
            assert delays[0] == pytest.approx(delays[1], rel=0.05), mix


MODELS: dict[type[Port], str] = {Red: "red min 30kB max 90kB gentle ecn seed 7", DualPi2: "dualpi2 seed 7"}


@pytest.mark.lab
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_is_that_of_its_rfc_or_paper(beside: Beside, model: type[Port]) -> None:
    """Beside a model in Python every packet is treated the same, at the same nanosecond."""
    text = MODELS[model]
    for mix, named in beside({"ours": sent.port(text)}, L4S if model is DualPi2 else MIXES).items():
        wanted = sent.Passed(*model(text, traffic.RATE).run(traffic.of_mix(mix, COUNT)))
        print(mix, "equal", named["ours"].equal(wanted), "of", COUNT)
        assert named["ours"].same(wanted), mix
        assert len(set(named["ours"].what)) > 1, mix


@pytest.mark.lab
def test_polices_as_linuxs_action(beside: Beside) -> None:
    """Linux's tokens are times in units of 64 ns: the rest is equal."""
    fifo = Options(traffic.RATE)
    ports = {
        "ours": sent.port("policer rate 8mbit burst 30kB"),
        "linux": sent.options(fifo, action="police rate 8mbit burst 30000 conform-exceed drop/pipe"),
    }
    for mix, named in beside(ports).items():
        print(mix, "equal", named["ours"].equal(named["linux"]), "of", COUNT)
        assert named["ours"].equal(named["linux"]) >= COUNT - 20, mix
        assert (named["ours"].what == 0).sum() > 500, mix
