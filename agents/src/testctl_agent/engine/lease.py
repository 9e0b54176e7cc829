# SPDX-License-Identifier: Apache-2.0
"""The right to change an entity: one holder at a time, for a time, and what happens when it ends.

    free ─acquire→ held ─release, or its time is over→ ending ─everything is restored→ free

While it is ending nobody may do anything.  What could not be restored is tried again by the next
Acquire, which is refused until it is.  Times are those of a clock that nobody can set.
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

from testctl_agent.engine import limits
from testctl_agent.engine.apply import Setting
from testctl_agent.engine.refusal import BadRequest, Held, Refusal
from testctl_agent.spec.errors import TestctlError

_log = logging.getLogger(__name__)
MOST_S = 60.0
LEAST_S = 0.1
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


def holder_name(who: str, holder: str) -> str:
    """The words by which others are told of a holder.  Raises BadRequest."""
    if not holder or len(holder) > _HOLDER_CHARS or not holder.isprintable():
        raise BadRequest(
            f"{who}: a lease wants a holder, printable and of at most {_HOLDER_CHARS} characters; "
            f"got {limits.shown(holder)}"
        )
    return holder


class Leases:
    """The lease of one agent.  All methods raise Refusal with the words for the peer.

    clean  called when a lease ends, with no change under way and none possible
    dirty  why everything is not restored already; "": it is
    """

    def __init__(self, who: str, clean: Clean, dirty: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._who = who
        self._clean = clean
        self._dirty = dirty
        self._clock = clock
        self._change = threading.Condition()
        self._held: Grant | None = None
        self._until = 0.0
        self._ending = ""  # whose lease is being ended
        self._busy = 0  # calls of the holder that change something now
        self._closed = False

    def acquire(self, holder: str, wanted_s: float) -> Grant:
        """A lease of at most MOST_S seconds (wanted 0 or less: of as much)."""
        holder_name(self._who, holder)
        with self._change:
            self._refuse_if_held()
            if not self._dirty:
                return self._grant(holder, wanted_s)
            self._ending = holder
        self._clean_up()
        with self._change:
            self._refuse_if_held()
            if self._dirty:
                raise Refusal(f"{self._who}: no lease before all is restored: {self._dirty}")
            return self._grant(holder, wanted_s)

    def _grant(self, holder: str, wanted_s: float) -> Grant:
        lifetime_s = min(max(wanted_s, LEAST_S), MOST_S) if wanted_s > 0 else MOST_S
        self._held = Grant(secrets.token_hex(_TOKEN_BYTES), holder, lifetime_s)
        self._until = self._clock() + lifetime_s
        self._change.notify_all()
        _log.info("%s: leased to %s for %g s", self._who, holder, lifetime_s)
        return self._held

    def _left_s(self) -> float:
        return self._until - self._clock()

    def _refuse_if_held(self) -> None:
        if self._closed:
            raise Held(f"{self._who}: the agent is ending")
        if self._ending or (self._held and self._left_s() <= 0):
            holder = self._ending or (self._held.holder if self._held else "")
            raise Held(f"{self._who}: leased to {holder}, whose lease has ended; everything is being restored")
        if self._held:
            raise Held(f"{self._who}: leased to {self._held.holder} for another {math.ceil(self._left_s())} s")

    def _mine(self, token: str, what: str) -> Grant:
        """The lease a token is of.  Call with the lock."""
        held = self._held if self._left_s() > 0 else None
        if held and hmac.compare_digest(held.token.encode(), token.encode(errors="replace")):
            return held
        if token and not held:
            raise Refusal(f"{self._who}: {what} wants a lease; the one given has ended")
        self._refuse_if_held()
        raise Refusal(f"{self._who}: {what} wants a lease; got none (Acquire gives one)")

    def check(self, token: str, what: str) -> None:
        """That a token is that of the lease."""
        with self._change:
            self._mine(token, what)

    @contextmanager
    def using(self, token: str, what: str) -> Iterator[None]:
        """A change by the holder; a lease does not end in the midst of it."""
        with self._change:
            self._mine(token, what)
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
            held = self._mine(token, "Renew")
            self._until = self._clock() + held.lifetime_s
            self._change.notify_all()
            return held

    def release(self, token: str) -> Sequence[Setting]:
        """End the lease; returns what was restored, or raises Refusal with what was not."""
        with self._change:
            self._begin_end(self._mine(token, "Release"))
        restored = self._clean_up()
        with self._change:
            if self._dirty:
                raise Refusal(self._dirty)
        return restored

    def _begin_end(self, held: Grant) -> None:
        """Call with the lock: from here on the token is worth nothing."""
        self._ending, self._held = held.holder, None
        self._change.notify_all()
        self._change.wait_for(lambda: not self._busy)

    def _clean_up(self) -> Sequence[Setting]:
        dirty, restored = "it failed without a word", ()  # type: tuple[str, Sequence[Setting]]
        try:
            restored, dirty = self._clean(), ""
        except TestctlError as error:
            dirty = str(error)
            _log.error("%s: %s", self._who, error)
        except Exception as error:  # noqa: BLE001 -- a bug there must not leave the lease ending for ever
            dirty = f"{type(error).__name__}; the agent's log says more"
            _log.exception("%s: not restored", self._who)
        finally:
            with self._change:
                self._ending, self._dirty = "", dirty
                self._change.notify_all()
        return restored

    def expire(self) -> bool:
        """End the lease if its time is over; whether it was."""
        with self._change:
            if self._held is None or self._left_s() > 0:
                return False
            _log.warning("%s: the lease of %s was not renewed", self._who, self._held.holder)
            self._begin_end(self._held)
        self._clean_up()
        return True

    def run(self) -> None:
        """End leases as their time comes, until `close`; sleeps while there is none."""
        while True:
            with self._change:
                while not self._closed and (self._held is None or self._left_s() > 0):
                    self._change.wait(None if self._held is None else self._left_s())
                if self._closed:
                    return
            self.expire()

    def close(self) -> None:
        """No lease from now on; returns when no change is under way."""
        with self._change:
            self._closed, self._held = True, None
            self._change.notify_all()
            self._change.wait_for(lambda: not self._busy and not self._ending)
