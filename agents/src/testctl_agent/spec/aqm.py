# SPDX-License-Identifier: Apache-2.0
"""Active queue management of a switch's port: which one, and its parameters by the names of its RFC or paper.

    aqm = "none" | KIND {NAME VALUE | FLAG}

NAMEs come in any order; the canonical text has all of them, in the order of KINDS.  The algorithms are Linux's qdiscs
(network/aqm_qdisc.py), and for the kinds of OWN lab/kernel/aqm_*.h.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from testctl_agent.spec.units import Bytes, Duration, Rate

NONE = "none"
SEED = "seed"
_SECOND = 10**9
_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?")


@dataclass(frozen=True)
class Number:
    """A parameter of a kind: its name, the value it has if it is not given (None: it must be), and its limits.

    read, show  between a word of the text and a whole number
    scale       that number as the kernel wants it: times the first, over the second
    step        Linux counts in multiples of it
    """

    name: str
    default: int | None
    least: int
    most: int
    read: Callable[[str], int]
    show: Callable[[int], str]
    scale: tuple[int, int] = (1, 1)
    step: int = 1


def _duration(name: str, default: int | None, least: int = 1000, most: int = 4 * _SECOND, step: int = 1) -> Number:
    return Number(name, default, least, most, Duration.parse, lambda value: str(Duration(value)), step=step)


def _bytes(name: str, default: int | None = None, most: int = 2**30, least: int = 1) -> Number:
    return Number(name, default, least, most, Bytes.parse, lambda value: str(Bytes(value)))


def _decimal(text: str, places: int) -> int:
    """A number of at most `places` decimals, times 10^places."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"want a number; got {text!r}")
    value = Decimal(text).scaleb(places)
    if value != int(value):
        raise ValueError(f"want a number of at most {places} decimals; got {text!r}")
    return int(value)


def _shown(value: int, places: int) -> str:
    return f"{Decimal(value).scaleb(-places).normalize():f}"


def _percent(name: str, default: int | None, whole: int, most: int = 10_000, least: int = 1, step: int = 1) -> Number:
    """A share; `whole`: the kernel's value of 100 %."""

    def read(text: str) -> int:
        if not text.endswith("%"):
            raise ValueError(f"want a share such as 10%; got {text!r}")
        return _decimal(text[:-1], 2)

    return Number(name, default, least, most, read, lambda value: f"{_shown(value, 2)}%", (whole, 10_000), step)


def _gain(name: str, default: int) -> Number:
    return Number(name, default, 0, 100_000, lambda text: _decimal(text, 3), lambda value: _shown(value, 3))


def _sixteenths(name: str, default: int) -> Number:
    """A gain of Linux's PIE, up to 32."""
    return Number(
        name, default, 0, 320_000, lambda text: _decimal(text, 4), lambda value: _shown(value, 4), (16, 10_000), 625
    )


def _whole(name: str, default: int, most: int, least: int = 0) -> Number:
    return Number(name, default, least, most, lambda text: _decimal(text, 0), str)


def _flag(name: str) -> Number:
    return Number(name, 0, 0, 1, int, str)


_SEED_NUMBER = _whole(SEED, 1, 10**18)

_CODEL = (_duration("target", 5 * 10**6, step=1000), _duration("interval", 10**8, step=1000), _flag("ecn"))
_PIE = (
    _duration("qdelay_ref", 15 * 10**6, step=1000),
    _duration("t_update", 15 * 10**6, 10**6, step=10**6),
    _sixteenths("alpha", 1250),
    _sixteenths("beta", 12_500),
)
_MAX_BURST, _MARK_ECNTH = 150 * 10**6, 1000
"""Constants of Linux's PIE, in ns and in 1/100 %."""


def _flows(most: int) -> tuple[Number, ...]:
    return _whole("flows", most, most, 1), _bytes("quantum", 1514, 2**20, 256)


KINDS: dict[str, tuple[Number, ...]] = {
    "fifo": (),
    "codel": _CODEL,
    "fq_codel": (*_CODEL, *_flows(1024), _SEED_NUMBER),
    "pie": (
        *_PIE,
        _duration("max_burst", _MAX_BURST, _MAX_BURST, _MAX_BURST),
        _flag("ecn"),
        _percent("mark_ecnth", _MARK_ECNTH, 100, _MARK_ECNTH, _MARK_ECNTH),
        _SEED_NUMBER,
    ),
    "fq_pie": (
        *_PIE,
        _flag("ecn"),
        _percent("mark_ecnth", 1000, 100, least=100, step=100),
        *_flows(1024),
        _SEED_NUMBER,
    ),
    "cake": (_duration("rtt", 10**8, step=1000), _SEED_NUMBER),
    "sfq": (*_flows(127), _SEED_NUMBER),
    "red": (
        _bytes("min"),
        _bytes("max"),
        _percent("max_p", 1000, 2**32),
        _whole("wq", 9, 30),
        _flag("gentle"),
        _flag("ecn"),
        _SEED_NUMBER,
    ),
    "policer": (Number("rate", None, 8, 10**13, Rate.parse, lambda value: str(Rate(value))), _bytes("burst")),
    "dualpi2": (
        _duration("target", 15 * 10**6),
        _duration("tupdate", 15 * 10**6),
        _gain("alpha", 150),
        _gain("beta", 3000),
        _whole("k", 2, 16, 1),
        _duration("min_th", 800_000, 0),
        _duration("range", 400_000, 0),
        _whole("th_len", 1, 10**6),
        _percent("weight", 1000, 10_000, most=5000),
        _SEED_NUMBER,
    ),
}
"""kind -> its parameters; a kind of OWN has them in the order of its enum in the lab's kernel."""

OWN = {"fifo": 0, "policer": 1, "dualpi2": 2, "red": 3}
"""Kinds that are no qdisc of Linux's below the port, and their numbers in lab/kernel/lab_port.h; red with `gentle`."""

FLAGS = frozenset(("ecn", "gentle"))
EXAMPLES = (
    "'codel target 5ms interval 100ms ecn', 'pie ecn seed 1', 'red min 30kB max 90kB', 'policer rate 10mbit burst "
    "15kB', 'dualpi2 target 15ms seed 1'"
)
WANT = f"an AQM such as {EXAMPLES} or fifo, or none"


@dataclass(frozen=True)
class Aqm:
    """values: of all parameters of its kind, in their order."""

    kind: str
    values: tuple[int, ...] = ()

    def __getitem__(self, name: str) -> int:
        return self.values[[number.name for number in KINDS[self.kind]].index(name)]

    def __str__(self) -> str:
        fields = [self.kind]
        for number, value in zip(KINDS[self.kind], self.values, strict=True):
            if number.name in FLAGS:
                fields += [number.name] if value else []
            else:
                fields += [number.name, number.show(value)]
        return " ".join(fields)

    @property
    def is_linuxs(self) -> bool:
        """Whether it is a qdisc of Linux's, which has its name."""
        return self.kind not in OWN or (self.kind == "red" and not self["gentle"])

    @property
    def seed(self) -> int:
        return self[SEED] if any(number.name == SEED for number in KINDS[self.kind]) else 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters without the seed."""
        return tuple(number.name for number in KINDS[self.kind] if number.name != SEED)

    @property
    def kernel_values(self) -> tuple[int, ...]:
        """The values of `names` in the kernel's units."""
        pairs = zip(KINDS[self.kind], self.values, strict=True)
        return tuple(value * number.scale[0] // number.scale[1] for number, value in pairs if number.name != SEED)


def parse(text: str) -> Aqm | None:
    """None: the port has none.  Raises ValueError "want …; got …"."""
    kind, *fields = text.split() or [""]
    if kind == NONE and not fields:
        return None
    if kind == "step":
        raise ValueError("want a threshold as the parameter ecn_threshold; got the AQM 'step'")
    if kind not in KINDS:
        raise ValueError(f"want {WANT}; got {text[:80]!r}")
    aqm = Aqm(kind, tuple(_values(kind, fields)))
    _agree(aqm)
    return aqm


def _values(kind: str, fields: list[str]) -> list[int]:
    known = {spec.name: spec for spec in KINDS[kind]}
    given: dict[str, int] = {}
    rest = iter(fields)
    for name in rest:
        spec = known.get(name)
        if spec is None:
            raise ValueError(f"want {kind} with {', '.join(known) or 'nothing else'}; got {name[:40]!r}")
        if name in given:
            raise ValueError(f"{kind}: want {name} once; got it twice")
        if name in FLAGS:
            given[name] = 1
            continue
        word = next(rest, "")
        try:
            given[name] = int(spec.read(word))
        except ValueError as error:
            raise ValueError(f"{kind}, {name}: {error}") from error
        if not spec.least <= given[name] <= spec.most:
            want = f"from {spec.show(spec.least)} to {spec.show(spec.most)}"
            if spec.least == spec.most:
                want = f"{spec.show(spec.least)}, a constant of Linux's"
            raise ValueError(f"{kind}, {name}: want {want}; got {word}")
        if given[name] % spec.step:
            raise ValueError(f"{kind}, {name}: want a multiple of {spec.show(spec.step)}, as Linux counts; got {word}")
    values = []
    for name, spec in known.items():
        value = given.get(name, spec.default)
        if value is None:
            raise ValueError(f"{kind}: want its {name}; got none")
        values.append(value)
    return values


def _agree(aqm: Aqm) -> None:
    """Parameters that contradict each other, or that Linux can't have together."""
    for kind, low, high in (("codel", "target", "interval"), ("fq_codel", "target", "interval"), ("red", "min", "max")):
        if aqm.kind == kind and aqm[low] >= aqm[high]:
            shown = {number.name: number.show for number in KINDS[kind]}
            got = f"{low} {shown[low](aqm[low])}, {high} {shown[high](aqm[high])}"
            raise ValueError(f"{kind}: want {low} less than {high}; got {got}")
    if aqm.kind == "red" and aqm.is_linuxs and aqm["max"].bit_length() + aqm["wq"] > 31:
        most = Bytes(2 ** (31 - aqm["wq"]) - 1)
        raise ValueError(f"red: want max at most {most} with wq {aqm['wq']}; got {Bytes(aqm['max'])}")
    if aqm.kind == "dualpi2":
        _agree_dualpi2(aqm["target"], aqm["tupdate"], aqm["min_th"], aqm["range"])


def _agree_dualpi2(target: int, tupdate: int, min_th: int, range_: int) -> None:
    """RFC 9332: scalable flows are marked below the classic queue's target, and PI2 runs at least once a target."""
    if tupdate > target:
        got = f"tupdate {Duration(tupdate)}, target {Duration(target)}"
        raise ValueError(f"dualpi2: want tupdate at most target; got {got}")
    if min_th + range_ >= target:
        got = f"min_th {Duration(min_th)}, range {Duration(range_)}, target {Duration(target)}"
        raise ValueError(f"dualpi2: want min_th and range together less than target; got {got}")


def canonical(text: str) -> str:
    return str(parse(text) or NONE)
