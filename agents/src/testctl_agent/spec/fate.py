# SPDX-License-Identifier: Apache-2.0
"""What shall become of chosen packets of a flow: the words of a plan as data, and back.

    fates  = "none" | fate {";" fate}
    fate   = action what "of" FLOW ["," "first"]
           | "delay" what "of" FLOW "by" DURATION ["," "first"]
           | "lose" RATE "of" FLOW ["burst" LENGTH] ["seed" NUMBER]
           | "reorder" RATE "of" FLOW "by" DURATION ["seed" NUMBER]
           | change RATE "of" FLOW ["seed" NUMBER]
           | change what "of" FLOW ["," "first"]
           | "swap" "data" (NUMBER {"," NUMBER} | "every" NUMBER) "of" FLOW ["," "first"]
    action = "drop" | "mark" | "echo" | "clear"
    change = "duplicate" | "corrupt" ["header"] | "trim"
    what   = ("data" | "acks") (ranges | "every" NUMBER) | "bytes" ranges
    ranges = range {"," range}
    range  = FROM | FROM "-" TO | FROM "-"

Both ends of a range belong to it.  Numbers of bytes may have a unit, and a rate may be in percent.  Blanks are free
between words.  ACKs have no payload: of the changes they can be duplicated, and their header corrupted.  A packet and
the one behind it are not both swapped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NoReturn, get_args

from testctl_agent.spec.units import Bytes, Duration, Quantity

LAST = 2**32 - 1
"""The end of a range that is open."""

NONE = "none"
"""The text of no fates."""

LONGEST = 16_384
"""Characters of a text of fates."""

MAX_ROWS = 256
"""Ranges of all connections together, and so for every: the size of the program's tables."""

MAX_SWAPS = 64
"""Connections that may swap packets: each holds one back."""

MIN_RATE = 2.0**-32
"""Losses are decided by comparing 32 bits of a hash."""

MAX_HOLD_NS = 4 * 10**9
"""How much later a packet is sent at most: 32 bits of nanoseconds hold it."""

MAX_BURST = 10**6
"""Packets that are lost one after the other on average, at most."""

Action = Literal[
    "drop", "mark", "echo", "clear", "lose", "delay", "reorder",
    "duplicate", "corrupt", "corrupt header", "trim", "swap",
]  # fmt: skip
What = Literal["data", "acks", "bytes"]


@dataclass(frozen=True)
class Fate:
    """One rule for one flow, applied to each of its connections by itself.

    action  drop; mark: CE if the packet is ECN-capable; echo: set ECE; clear: CE back to ECT(0);
            lose: drop at random; delay: send later than the port would, while those behind it go on;
            reorder: delay at random; duplicate: a second copy follows directly; corrupt: invert a bit of the payload,
            and leave the checksum as it is; corrupt header: the same with a bit of TCP's window; trim: cut off the
            payload, adjust IP's length and leave TCP's checksum; swap: exchange it with the flow's
            next data packet
    what    data: segments with payload that the flow's sender sends (of a reversed flow its sink), counted from 1 as
            they reach the switch;
            acks: segments without payload, SYN, FIN or RST, the other way, counted likewise;
            bytes: segments with payload whose first byte lies in a range, counted from 0
    ranges  inclusive; empty for `every` and at random
    every   each n-th one; 0: not this kind
    first   only first transmissions, and counted among them
    rate    at random: the share, in (0, 1]; each transmission draws anew.  0: not at random
    seed    at random
    by_ns   of delay and reorder: how much later, in ns
    burst   of lose: how many are lost one after the other on average (Gilbert 1960, two states); 0: each by itself
    """

    action: Action
    flow: str
    what: What = "data"
    ranges: tuple[tuple[int, int], ...] = ()
    every: int = 0
    first: bool = False
    rate: float = 0.0
    seed: int = 0
    by_ns: int = 0
    burst: float = 0.0

    @property
    def random(self) -> bool:
        return self.rate > 0


RANDOM: tuple[Action, ...] = ("lose", "reorder")
"""Actions whose packets are drawn."""
CHANGES: tuple[Action, ...] = ("duplicate", "corrupt", "corrupt header", "trim")
"""Actions whose packets are chosen or drawn."""
UNSUMMED: tuple[Action, ...] = ("corrupt", "corrupt header", "trim")
"""Actions after which TCP's checksum is wrong, so that the receiver's TCP drops the packet."""
HOLDING: tuple[Action, ...] = ("delay", "reorder")
"""Actions that send a packet later; not every target can."""
ACTIONS: tuple[Action, ...] = get_args(Action)
_WORDS = tuple(action for action in ACTIONS if " " not in action)
WHATS: tuple[What, ...] = get_args(What)

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[0-9][0-9A-Za-z.]*(?:(?<=[eE])[+-]?[0-9]+)?|\S|$)")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_NUMBER = re.compile(r"[0-9]{1,10}")
_QUANTITY = re.compile(r"[0-9][0-9A-Za-z.]*")
_RATE = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,3})?")


def parse(text: str) -> tuple[Fate, ...]:
    """The fates of a plan's text, ranges in order and joined where they touch.

    Raises ValueError "want …; got … at column N", columns counted from 1.
    """
    if len(text) > LONGEST:
        raise ValueError(f"want at most {LONGEST} characters; got {len(text)}")
    if text.strip() == NONE:
        return ()
    reader = _Reader(text)
    fates: list[Fate] = []
    while True:
        at = reader.begin()
        fate = _fate(reader)
        for other in fates:
            if clash := _clash(fate, other):
                reader.refuse(clash, show((fate,)), at)
        fates.append(fate)
        if reader.take(";"):
            continue
        reader.end()
        return tuple(fates)


def show(fates: Iterable[Fate]) -> str:
    """The canonical text: what `parse` reads back as these fates."""
    return "; ".join(_shown(fate) for fate in fates) or NONE


class _Reader:
    """Reads a text token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def _next(self) -> tuple[str, int, int]:
        """(the current token, "" at the end; where it begins and ends)"""
        match = _TOKEN.match(self._text, self._at)
        assert match is not None, "a token or the end is always there"
        return match[1], match.start(1), match.end(1)

    def begin(self) -> int:
        return self._next()[1]

    def at(self, *tokens: str) -> bool:
        return self._next()[0] in tokens

    def take(self, *tokens: str) -> str:
        """Consume and return the current token if it is one of these; else ""."""
        token, _, end = self._next()
        if token not in tokens:
            return ""
        self._at = end
        return token

    def want(self, *tokens: str) -> str:
        choice = " or ".join(tokens) if len(tokens) < 3 else "one of " + ", ".join(tokens)
        return self.take(*tokens) or self.refuse(choice)

    def word(self, pattern: re.Pattern[str], want: str) -> tuple[str, int]:
        """Consume a token of that form; returns it, and where it begins."""
        token, at, end = self._next()
        if not pattern.fullmatch(token):
            self.refuse(want)
        self._at = end
        return token, at

    def end(self) -> None:
        if self._next()[0]:
            self.refuse('"," or ";" or the end')

    def refuse(self, want: str, got: str | None = None, at: int | None = None) -> NoReturn:
        word, here, _ = self._next()
        shown = got if got is not None else repr(word) if word else "the end"
        shown = shown if len(shown) <= 60 else shown[:59] + "…"
        raise ValueError(f"want {want}; got {shown} at column {(here if at is None else at) + 1}")


def _fate(reader: _Reader) -> Fate:
    action: Action = reader.want(*_WORDS)  # type: ignore[assignment]
    if action == "corrupt" and reader.take("header"):
        action = "corrupt header"
    if action in RANDOM or (action in CHANGES and not reader.at(*WHATS)):
        return _random(reader, action)
    at = reader.begin()
    what: What = reader.want(*(WHATS if action != "swap" else WHATS[:1]))  # type: ignore[assignment]
    if what == "acks" and action in ("corrupt", "trim"):
        reader.refuse("data or bytes: ACKs have no payload", what, at)
    at = reader.begin()
    every = 0
    ranges: tuple[tuple[int, int], ...] = ()
    if what != "bytes" and reader.take("every"):
        every = _number(reader, 1, "a whole number above 0")
    else:
        ranges = _ranges(reader, what)
    if action == "swap" and (every == 1 or any(low != high for low, high in ranges)):
        got = "every 1" if every else _range(next(pair for pair in ranges if pair[0] != pair[1]))
        reader.refuse("packets of which none is the next one of another: each is swapped with its next", got, at)
    flow = _flow(reader)
    by_ns = _hold(reader) if action in HOLDING else 0
    first = False
    if reader.take(","):
        if every or what == "acks":
            reader.refuse(f"no first: {'every n-th one' if every else 'acks'} of all transmissions are counted")
        first = bool(reader.want("first"))
    return Fate(action, flow, what, ranges, every, first, by_ns=by_ns)


def _random(reader: _Reader, action: Action) -> Fate:
    other = f"{', '.join(WHATS)} or " if action in CHANGES else ""
    text, at = reader.word(_RATE, f"{other}a rate above 0, at most 1, such as 1e-5 or 1%")
    percent = reader.take("%")
    rate = float(Decimal(text) / 100) if percent else float(text)
    if not MIN_RATE <= rate <= 1:
        reader.refuse("a rate above 0 (not below 2^-32), at most 1 (100%)", text + percent, at)
    flow = _flow(reader)
    by_ns = _hold(reader) if action in HOLDING else 0
    burst = _burst(reader, rate) if action == "lose" and reader.take("burst") else 0.0
    seed = _number(reader, 0, "a seed, a whole number from 0") if reader.take("seed") else 0
    return Fate(action, flow, rate=rate, seed=seed, by_ns=by_ns, burst=burst)


def _burst(reader: _Reader, rate: float) -> float:
    """How many packets are lost one after the other on average."""
    want = f"how many are lost in a row on average, at least 1, at most {MAX_BURST}"
    text, at = reader.word(_RATE, want)
    burst = float(text)
    if not 1 <= burst <= MAX_BURST:
        reader.refuse(want, text, at)
    if rate == 1:
        reader.refuse("no burst where all are lost", text, at)
    if rate > burst / (burst + 1):
        reader.refuse(f"a burst of at least {rate / (1 - rate):.3g}, for a rate of {_rate(rate)}", text, at)
    return burst


def _hold(reader: _Reader) -> int:
    """By how much later a packet is sent, in ns."""
    want = f"a duration from 1ns to {Duration(MAX_HOLD_NS)}, such as 3ms"
    reader.want("by")
    hold_ns, text, at = _quantity(reader, Duration, want)
    if not 1 <= hold_ns <= MAX_HOLD_NS:
        reader.refuse(want, text, at)
    return hold_ns


def _quantity(reader: _Reader, of: type[Quantity], want: str) -> tuple[int, str, int]:
    """A number with its unit; its text, and where that begins."""
    text, at = reader.word(_QUANTITY, want)
    try:
        return int(of.parse(text)), text, at
    except ValueError:
        reader.refuse(want, repr(text), at)


def _flow(reader: _Reader) -> str:
    reader.want("of")
    return reader.word(_NAME, "the name of a flow")[0]


def _number(reader: _Reader, least: int, want: str) -> int:
    text, at = reader.word(_NUMBER, want)
    if not least <= int(text) <= LAST:
        reader.refuse(f"{want} to {LAST}" if int(text) > LAST else want, text, at)
    return int(text)


def _ranges(reader: _Reader, what: What) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    while True:
        at = reader.begin()
        low = high = _bound(reader, what)
        if reader.take("-"):
            end = reader.begin()
            high = LAST if reader.at("of", ",") else _bound(reader, what)
            if high < low:
                reader.refuse(f"a range that ends at {low} or above", str(high), end)
        for other in ranges:
            if low <= other[1] and other[0] <= high:
                reader.refuse(
                    "ranges that do not overlap", f"{_range((low, high), what)} after {_range(other, what)}", at
                )
        ranges.append((low, high))
        if not reader.take(","):
            return _joined(ranges)


def _bound(reader: _Reader, what: What) -> int:
    """An ordinal, counted from 1, or a number of bytes, from 0."""
    if what != "bytes":
        return _number(reader, 1, "an ordinal, a whole number from 1")
    want = "a number of bytes such as 0, 1448 or 64kB"
    count, text, at = _quantity(reader, Bytes, want)
    if count > LAST:
        reader.refuse(f"{want}, at most {LAST}", text, at)
    return count


def _joined(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """In order; those that touch as one."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and joined[-1][1] + 1 == low:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return tuple(joined)


def _clash(fate: Fate, other: Fate) -> str:
    """Why two fates can't be combined, as the wanted alternative; "" when they can."""
    if fate.flow != other.flow:
        return ""
    if fate.random and other.random:
        return f"one {fate.action} for flow {fate.flow}" if fate.action == other.action else ""
    if fate.random or other.random:
        return ""
    if fate.action == other.action == "swap" and any(
        abs(low - begin) == 1 for low, _ in fate.ranges for begin, _ in other.ranges
    ):
        return f"no packet that is swapped with one of {show((other,))!r}"
    if fate.what != other.what or fate.first != other.first:
        return ""
    if fate.every or other.every:
        return f"one every for {fate.what} of flow {fate.flow}" if fate.every and other.every else ""
    for low, high in fate.ranges:
        if any(low <= end and begin <= high for begin, end in other.ranges):
            return f"ranges that do not overlap those of {show((other,))!r}"
    return ""


def _shown(fate: Fate) -> str:
    by = f" by {Duration(fate.by_ns)}" if fate.by_ns else ""
    if fate.random:
        burst = f" burst {_rate(fate.burst)}" if fate.burst else ""
        return f"{fate.action} {_rate(fate.rate)} of {fate.flow}{by}{burst} seed {fate.seed}"
    chosen = f"every {fate.every}" if fate.every else ",".join(_range(pair, fate.what) for pair in fate.ranges)
    return f"{fate.action} {fate.what} {chosen} of {fate.flow}{by}" + (", first" if fate.first else "")


def _rate(rate: float) -> str:
    """The shortest text that reads back as the rate: 1e-5, 0.001, 1."""
    text = repr(float(rate))
    if "e" in text:
        digits, _, power = text.partition("e")
        return f"{digits}e{int(power)}"
    return text.removesuffix(".0")


def _range(pair: tuple[int, int], what: What = "data") -> str:
    low, high = (_bytes(bound) if what == "bytes" else str(bound) for bound in pair)
    if pair[0] == pair[1]:
        return low
    return f"{low}-" if pair[1] == LAST else f"{low}-{high}"


def _bytes(count: int) -> str:
    """64000 as 64kB, 1448 as 1448."""
    return str(Bytes(count)) if count and count % 1000 == 0 else str(count)
