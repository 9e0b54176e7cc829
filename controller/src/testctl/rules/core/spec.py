# SPDX-License-Identifier: Apache-2.0
"""What a rule is: what a standard asks of every connection, and a pure function that finds where it does not hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from testctl.records.schema import Array, Bools

Level = Literal["MUST", "SHOULD", "Linux"]
Need = Literal["start", "mtu", "order", "packets", "reads", "segments", "tcp_events"]
"""start: the capture has the handshake; mtu: no ICMP spoke of a smaller path MTU; order: packets leave the host as TCP
sends them; packets: TCP kept all that arrived, and the peer what it had reported by SACK; reads: the application reads
what comes; segments: they keep their sizes; tcp_events: TCP was traced, and the peer kept likewise."""
Thing = Literal["classic_ecn", "gap", "repeat", "reset", "fin", "retransmission", "sack", "timer", "zero_window"]
"""classic_ecn: a connection uses ECN of RFC 3168; gap: something arrived above a gap; repeat: data arrived again;
reset, fin: a packet with the flag; retransmission: data or a FIN was sent again; timer: by a timer; sack: a SACK block,
sent or received; zero_window: an ACK of one, sent or received."""
SENDER: tuple[Need, ...] = ("start", "mtu", "order", "packets")
"""What is needed to compare what a host sends with what had arrived."""
KEPT = 20
"""Violations of a rule, by one end of a flow, that are kept with their packets; the others are counted."""


@dataclass(frozen=True)
class RuleSpec:
    """A rule file: `name` is the file's, with - for _.

    must     what must hold, as a sentence
    source   the RFC and the section that asks for it, such as "RFC 5681, 4.2"
    level    its word there; "Linux": no RFC asks for it, and Linux does it
    quote    the standard's own sentence, or the part of it that counts
    needs    without any of which the rule is undecided (core/needs.py)
    only_if  where one of these is absent, nothing breaks the rule (core/needs.py)
    any_clock  whether it holds of a capture by the wall clock, which does not tell when TCP dealt with what it has
    linux    where Linux is known to differ, since which release, and where that is written; "": nowhere
    """

    name: str
    must: str
    source: str
    level: Level
    quote: str
    linux: str = ""
    needs: tuple[Need, ...] = ()
    only_if: tuple[Thing, ...] = ()
    any_clock: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", self.name):
            raise ValueError(f"rule {self.name!r}: want a name of small letters, digits and -")


@dataclass(frozen=True)
class Violation:
    """One place at which a rule does not hold.

    row    of the trace: the packet that breaks it
    proof  rows of the trace that show why, such as the ACK that came before
    text   a sentence about it
    """

    row: int
    text: str
    proof: tuple[int, ...] = ()


@dataclass(frozen=True)
class Found:
    """What a rule found at one end of a flow: the number of violations, and the first of them.

    undecided  why it could not be decided; "": it could, or there was nothing to be decided
    """

    count: int = 0
    first: tuple[Violation, ...] = ()
    undecided: str = ""


NOTHING = Found()


def undecided(why: str) -> Found:
    """The rule says nothing of this end."""
    return Found(undecided=why)


def where(broken: Bools, text: Callable[[int], str], *evidence: Array | Callable[[], Array]) -> Found:
    """A violation at each row of the mask.

    text      of a row
    evidence  arrays with a row of the trace for each row, -1 where there is none, or what makes them if any is needed
    """
    rows = np.flatnonzero(broken)
    if not len(rows):
        return NOTHING
    proofs = [made() if callable(made) else made for made in evidence]
    kept = tuple(
        Violation(row, text(row), tuple(at for proof in proofs if (at := int(proof[row])) >= 0))
        for row in rows[:KEPT].tolist()
    )
    return Found(len(rows), kept)
