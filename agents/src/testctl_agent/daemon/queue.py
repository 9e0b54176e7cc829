# SPDX-License-Identifier: Apache-2.0
"""The queue for an entity's lease: first come, first served, for a whole run and not only for a point.

A run polls with a ticket of its own before its first lease and until its end.  A ticket leaves after SEEN_S without a
poll, and when its lease is not renewed, so that a dead controller keeps nobody waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from testctl_agent.engine import limits
from testctl_agent.engine.refusals import BadRequest, LimitReached

SEEN_S = 12.0
MOST = 64
TICKET_CHARS = 64


@dataclass
class Place:
    """since, seen: when it came and when it was last polled, on the queue's clock."""

    ticket: str
    holder: str
    since: float
    seen: float


class Queue:
    """Not safe for threads: its owner has a lock.  Methods raise Refusal with the message for the peer."""

    def __init__(self, who: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._who = who
        self._clock = clock
        self._places: list[Place] = []

    def places(self) -> list[Place]:
        """The places still taken, in their order."""
        now = self._clock()
        self._places = [place for place in self._places if now - place.seen <= SEEN_S]
        return list(self._places)

    def ask(self, ticket: str, holder: str) -> int:
        """How many are before a ticket, which comes last if it is new; 0: it is its turn."""
        if not ticket or len(ticket) > TICKET_CHARS or not ticket.isprintable():
            got = limits.shown(ticket)
            raise BadRequest(f"{self._who}: want a ticket of at most {TICKET_CHARS} characters; got {got}")
        places, now = self.places(), self._clock()
        for index, place in enumerate(places):
            if place.ticket == ticket:
                place.seen = now
                return index
        if len(places) >= MOST:
            raise LimitReached(f"{self._who}: want at most {MOST} in the queue for its lease")
        self._places.append(Place(ticket, holder, now, now))
        return len(places)

    def keep(self, ticket: str, holder: str, kept_s: float) -> None:
        """A place that needs no polls for kept_s; a poll makes it a usual one."""
        now = self._clock()
        self._places.append(Place(ticket, holder, now, now + kept_s - SEEN_S))

    def refresh(self, ticket: str) -> int:
        """As ask, for a ticket that has a place; -1 if it has none."""
        return self.ask(ticket, "") if any(place.ticket == ticket for place in self.places()) else -1

    def leave(self, ticket: str) -> None:
        self._places = [place for place in self._places if place.ticket != ticket]

    def seen(self, ticket: str) -> None:
        """A call that shows that a ticket's run goes on."""
        for place in self._places:
            if place.ticket == ticket:
                place.seen = self._clock()

    def refusal(self, ticket: str) -> str:
        """Why a ticket, or "" for a caller without one, has to wait; "" when it may lease."""
        places = self.places()
        if not places or places[0].ticket == ticket:
            return ""
        first = places[0]
        more = f", and {len(places) - 1} more wait" if len(places) > 1 else ""
        return f"leased to {first.holder}, whose run began {self._clock() - first.since:.0f} s ago{more}"
