# SPDX-License-Identifier: Apache-2.0
"""Leases: the exclusive right to change an entity for a limited time, and the restore at its end.

    free ─acquire→ held ─release, or its time is over→ ending ─everything is restored→ free

While it is ending nobody may do anything.  What could not be restored is tried again by `run`, after 1 s, 2 s, 4 s, …
60 s, and by every Acquire, which is refused until it is.  A lease with which its holder may boot the machine (boots.py)
is followed by a pause, in which nobody gets one.  Times are of a monotonic clock.
"""

from __future__ import annotations

import hmac
import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from testctl_agent.daemon.boots import ORDERED_S, Boots
from testctl_agent.daemon.queue import Queue
from testctl_agent.daemon.sd_notify import Watchdog
from testctl_agent.engine import limits
from testctl_agent.engine.apply import Setting
from testctl_agent.engine.refusals import BadRequest, HeldByOther, Refusal
from testctl_agent.spec.errors import TestctlError

_log = logging.getLogger(__name__)
MAX_S = 60.0
MIN_S = 0.1
MAX_BOOT_S = 5 * 3600.0
RETRY_S, MAX_RETRY_S = 1.0, 60.0
"""Retry times of a failed restore: the first pause, which doubles each time, and the maximum."""
_TOKEN_BYTES = 32
_HOLDER_CHARS = 200

Clean = Callable[[], Sequence[Setting]]
"""Stop every task, restore everything, remove the files; returns what was restored, or raises TestctlError."""


@dataclass(frozen=True)
class Grant:
    """A lease as its holder has it; the token is in no text that anybody prints."""

    token: str
    holder: str
    lifetime_s: float

    def __repr__(self) -> str:
        return f"Grant(holder={self.holder!r}, lifetime_s={self.lifetime_s})"


@dataclass(frozen=True)
class State:
    """before: places before the ticket's; leased_to: "" when nobody has the lease; places: (holder, seconds ago)."""

    before: int
    leased_to: str
    leased_s: float
    left_s: float
    places: Sequence[tuple[str, float]]


def holder_name(who: str, holder: str) -> str:
    """The description of a holder in messages to others.  Raises BadRequest."""
    if not holder or len(holder) > _HOLDER_CHARS or not holder.isprintable():
        raise BadRequest(
            f"{who}: a lease wants a holder, printable and of at most {_HOLDER_CHARS} characters; "
            f"got {limits.shown(holder)}"
        )
    return holder


class Leases:
    """The lease of one agent.  All methods raise Refusal with the message for the peer.

    clean  called when a lease ends, with no change under way and none possible
    unrestored  why everything is not restored already; "": it is
    boots  the run that boots the machine, also across the boot
    """

    def __init__(
        self,
        who: str,
        clean: Clean,
        unrestored: str = "",
        clock: Callable[[], float] = time.monotonic,
        boots: Boots | None = None,
    ) -> None:
        self._who = who
        self._clean = clean
        self._unrestored = unrestored
        self._clock = clock
        self._change = threading.Condition()
        self._held: Grant | None = None
        self._until = 0.0
        self._since = 0.0
        self._queue = Queue(who, clock)
        self._boots = boots or Boots()
        self._booted = ("", "", 0.0)  # (ticket, holder, until when) that may have ordered a reboot
        if noted := self._boots.noted:
            self._queue.keep(noted.ticket, noted.holder, noted.limit_s)
        self._ticket = ""  # of the run that has the lease
        self._ending = False  # a lease, or the try to restore what one left
        self._last = ""  # who had the lease before
        self._retry_s = RETRY_S
        self._retry_at = self._clock() + RETRY_S  # when to try again, while not all is restored
        self._busy = 0  # calls of the holder that change something now
        self._closed = False
        self._watchdog = Watchdog()

    def acquire(self, holder: str, wanted_s: float, ticket: str = "") -> Grant:
        """A lease of at most MAX_S seconds (wanted 0 or less: of as much); for a ticket, if it is its turn."""
        holder_name(self._who, holder)
        with self._change:
            self._refuse_if_held()
            if why := self._queue.refusal(ticket):
                raise HeldByOther(f"{self._who}: {why}")
            self._refuse_if_it_may_boot(ticket)
            if not self._unrestored:
                return self._grant(holder, wanted_s, ticket)
            self._ending = True
        self._clean_up()
        with self._change:
            self._refuse_if_held()
            if self._unrestored:
                raise Refusal(f"{self._who}: no lease before all is restored: {self._unrestored}")
            return self._grant(holder, wanted_s, ticket)

    def _refuse_if_it_may_boot(self, ticket: str) -> None:
        if (noted := self._boots.noted) and noted.ticket != ticket:  # its place was not asked about any more
            self._forget_boot()
        whose, holder, until = self._booted
        if whose != ticket and (left_s := until - self._clock()) > 0:
            raise HeldByOther(f"{self._who}: leased to {holder}, who may boot it for another {math.ceil(left_s)} s")

    def _forget_boot(self) -> None:
        if (noted := self._boots.noted) and self._boots.forget():
            self._booted = (noted.ticket, noted.holder, self._clock() + ORDERED_S)

    def boot(self, token: str, limit_s: float) -> None:
        """Keep the holder's place, for limit_s seconds from the agent's next start, and let root boot the machine."""
        with self._change:
            held = self._held_by(token, "Boot")
            if not self._ticket or not 0 < limit_s <= MAX_BOOT_S:
                raise BadRequest(
                    f"{self._who}: Boot wants a lease with a ticket, and at most {MAX_BOOT_S:g} s; got {limit_s:g} s"
                )
            self._boots.note(self._ticket, held.holder, limit_s)

    def queue(self, ticket: str, holder: str, leave: bool = False, keep: bool = False) -> State:
        """A ticket's place, which it gets, keeps or leaves; without a ticket only who has the lease and who waits."""
        with self._change:
            before = 0
            if ticket and leave:
                self._queue.leave(ticket)
                if self._held is None and (noted := self._boots.noted) and noted.ticket == ticket:
                    self._forget_boot()
            elif ticket and keep:
                before = self._queue.refresh(ticket)
            elif ticket:
                before = self._queue.ask(ticket, holder_name(self._who, holder))
            now = self._clock()
            places = [(place.holder, now - place.since) for place in self._queue.places()]
            held = self._held
            leased = (held.holder, now - self._since, max(self._left_s(), 0.0)) if held else ("", 0.0, 0.0)
            return State(before, *leased, places)

    def _grant(self, holder: str, wanted_s: float, ticket: str) -> Grant:
        lifetime_s = min(max(wanted_s, MIN_S), MAX_S) if wanted_s > 0 else MAX_S
        self._boots.forget()
        self._held = Grant(secrets.token_hex(_TOKEN_BYTES), holder, lifetime_s)
        self._since = self._clock()
        self._until = self._since + lifetime_s
        self._ticket = ticket
        self._queue.seen(ticket)
        self._change.notify_all()
        _log.info("%s: leased to %s for %g s", self._who, holder, lifetime_s)
        return self._held

    def _left_s(self) -> float:
        return self._until - self._clock()

    def _refuse_if_held(self) -> None:
        if self._closed:
            raise HeldByOther(f"{self._who}: the agent is ending")
        if self._ending or (self._held and self._left_s() <= 0):
            holder = self._held.holder if self._held else self._last
            whose = f"leased to {holder}, whose lease has ended" if holder else "an agent before left it changed"
            raise HeldByOther(f"{self._who}: {whose}; everything is being restored")
        if self._held:
            raise HeldByOther(f"{self._who}: leased to {self._held.holder} for another {math.ceil(self._left_s())} s")

    def _held_by(self, token: str, what: str) -> Grant:
        """The lease of a token.  Call with the lock."""
        held = self._held if self._left_s() > 0 else None
        if held and hmac.compare_digest(held.token.encode(), token.encode(errors="replace")):
            return held
        if token and not held:
            raise Refusal(f"{self._who}: {what} wants a lease; the one given has ended")
        self._refuse_if_held()
        raise Refusal(f"{self._who}: {what} wants a lease; got none (Acquire gives one)")

    def check(self, token: str, what: str) -> None:
        """Check that a token is the lease's."""
        with self._change:
            self._held_by(token, what)

    @contextmanager
    def using(self, token: str, what: str) -> Iterator[None]:
        """Context of a change by the holder; the lease does not end during it."""
        with self._change:
            self._held_by(token, what)
            self._busy += 1
        try:
            yield
        finally:
            with self._change:
                self._busy -= 1
                self._change.notify_all()

    def renew(self, token: str) -> Grant:
        """The same lease, for the same lifetime from now."""
        with self._change:
            held = self._held_by(token, "Renew")
            self._until = self._clock() + held.lifetime_s
            self._queue.seen(self._ticket)
            self._change.notify_all()
            return held

    def release(self, token: str) -> Sequence[Setting]:
        """End the lease; returns what was restored, or raises Refusal with what was not."""
        with self._change:
            self._begin_end(self._held_by(token, "Release"))
        restored = self._clean_up()
        with self._change:
            if self._unrestored:
                raise Refusal(self._unrestored)
        return restored

    def _begin_end(self, held: Grant) -> None:
        """Call with the lock: invalidates the token."""
        self._ending, self._last, self._held = True, held.holder, None
        self._forget_boot()
        self._change.notify_all()
        self._change.wait_for(lambda: not self._busy)

    def _clean_up(self) -> Sequence[Setting]:
        unrestored, restored = "it failed without a word", ()  # type: tuple[str, Sequence[Setting]]
        try:
            restored, unrestored = self._clean(), ""
        except TestctlError as error:
            unrestored = str(error)
            _log.error("%s: %s", self._who, error)
        except Exception as error:  # noqa: BLE001 -- a bug there must not leave the lease ending for ever
            unrestored = f"{type(error).__name__}; the agent's log says more"
            _log.exception("%s: not restored", self._who)
        finally:
            with self._change:
                if self._unrestored and not unrestored:
                    _log.warning("%s: what was not restored before is now", self._who)
                self._ending, self._unrestored = False, unrestored
                self._retry_at = self._clock() + self._retry_s
                self._retry_s = min(2 * self._retry_s, MAX_RETRY_S) if unrestored else RETRY_S
                self._change.notify_all()
        return restored

    def expire(self) -> bool:
        """End the lease if its time is over, and its run's place in the queue; returns whether it was."""
        with self._change:
            if self._held is None or self._left_s() > 0:
                return False
            _log.warning("%s: the lease of %s was not renewed", self._who, self._held.holder)
            self._queue.leave(self._ticket)
            self._begin_end(self._held)
        self._clean_up()
        return True

    def retry(self) -> bool:
        """Try again what could not be restored, if it is time to; whether it was."""
        with self._change:
            if not self._unrestored or self._ending or self._closed or self._clock() < self._retry_at:
                return False
            self._ending = True
        self._clean_up()
        return True

    def _wait_s(self) -> float | None:
        """How long there is nothing to do; None: until something changes."""
        if self._ending:
            return None
        if self._held is not None:
            return max(self._left_s(), 0.0)
        return max(self._retry_at - self._clock(), 0.0) if self._unrestored else None

    def run(self) -> None:
        """End leases as their time comes, and restore what was not, until `close`; sleeps while there is neither."""
        while True:
            try:
                with self._change:
                    while not self._closed and (wait_s := self._wait_s()) != 0:
                        self._change.wait(self._watchdog.turn(wait_s))
                    if self._closed:
                        return
                if not self.expire():
                    self.retry()
            except Exception:  # noqa: BLE001 -- without this thread no lease would ever end
                _log.exception("%s: leases", self._who)
                time.sleep(RETRY_S)

    def close(self) -> None:
        """No lease from now on; returns when no change is under way."""
        with self._change:
            self._closed, self._held = True, None
            self._change.notify_all()
            self._change.wait_for(lambda: not self._busy and not self._ending)
