# SPDX-License-Identifier: Apache-2.0
"""Over thousands of schedules there are never two holders, and the end of each lease restores.

`TESTCTL_SCHEDULES=10000 pytest agents/tests/daemon/test_schedules.py` runs so many; a failure names its seed.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from testctl_agent.daemon.lease import Grant, Leases
from testctl_agent.engine.apply import Setting

from agents.tests.daemon.schedules import Event, World, wrong

COUNT = int(os.environ.get("TESTCTL_SCHEDULES", "500"))


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The log of thousands of leases."""
    caplog.set_level(logging.CRITICAL, "testctl_agent")


def test_never_two_holders_and_each_end_restores() -> None:
    seen: Counter[str] = Counter()
    for seed in range(COUNT):
        history = World(seed).run()
        assert not (says := wrong(history)), (seed, says, history)
        seen.update(event.what for event in history)
    print(f"{COUNT} schedules: {dict(sorted(seen.items()))}")
    # They are about something: leases change hands under changes, and restores fail and come off.
    assert seen["granted"] > COUNT
    assert min(seen[what] for what in ("renewed", "released", "change begins", "clean fails", "looked")) > COUNT / 10
    assert seen["clean ends"] > seen["clean fails"]
    assert seen["rebooted"] > COUNT / 20


class ForgetsThatItEnds(Leases):
    def _refuse_if_held(self) -> None:
        self._ending = False
        super()._refuse_if_held()


class DoesNotWait(Leases):
    def _begin_end(self, held: Grant) -> None:
        self._ending, self._last, self._held = True, held.holder, None


class BelievesAnyToken(Leases):
    def _held_by(self, token: str, what: str) -> Grant:
        return self._held or super()._held_by(token, what)


class GrantsWhatIsNotRestored(Leases):
    def _clean_up(self) -> Sequence[Setting]:
        done = super()._clean_up()
        self._unrestored = ""
        return done


class NeverTriesAgain(Leases):
    def retry(self) -> bool:
        self._retry_at = float("inf")
        return False


class EndsEarly(Leases):
    def _left_s(self) -> float:
        return super()._left_s() - 1.0


class KeepsNoPlace(Leases):
    """Over a boot."""

    def __init__(self, *arguments: Any, boots: Any) -> None:
        boots.forget()
        super().__init__(*arguments, boots=boots)


class IsFollowedAtOnce(Leases):
    def _refuse_if_it_may_boot(self, ticket: str) -> None:
        if (noted := self._boots.noted) and noted.ticket != ticket:
            self._forget_boot()


class LetsRootBootForEver(Leases):
    def _forget_boot(self) -> None:
        pass

    def _refuse_if_it_may_boot(self, ticket: str) -> None:
        pass

    def _grant(self, holder: str, wanted_s: float, ticket: str) -> Grant:
        noted, self._boots.noted = self._boots.noted, None
        grant = super()._grant(holder, wanted_s, ticket)
        self._boots.noted = noted
        return grant


def test_a_root_that_does_not_look_whose_boot_it_is_is_found() -> None:
    assert any(wrong(World(seed, fenced=False).run()) for seed in range(300))


@pytest.mark.parametrize(
    "broken",
    [
        ForgetsThatItEnds, DoesNotWait, BelievesAnyToken, GrantsWhatIsNotRestored, NeverTriesAgain, EndsEarly,
        KeepsNoPlace, IsFollowedAtOnce, LetsRootBootForEver,
    ],
)  # fmt: skip
def test_a_lease_that_is_wrong_is_found(broken: Any) -> None:
    """The checker and the schedules: each of these is found within a few hundred."""
    assert any(wrong(World(seed, broken).run()) for seed in range(300))


@pytest.mark.parametrize(
    ("history", "says"),
    [
        ([Event(0, "granted", "a", 9), Event(5, "granted", "b", 9)], "two holders"),
        ([Event(0, "granted", "a", 9), Event(1, "change begins", "a"), Event(9, "granted", "b", 20)], "not everything"),
        ([Event(0, "granted", "a", 9), Event(1, "change begins", "b")], "by who has it not"),
        ([Event(0, "granted", "a", 9), Event(9, "renewed", "a", 20)], "by who has it not"),
        ([Event(0, "granted", "a", 9), Event(1, "change begins", "a"), Event(9, "clean begins")], "within a change"),
        ([Event(0, "granted", "a", 9), Event(3, "clean begins")], "before its time"),
        ([Event(0, "clean begins"), Event(1, "clean fails"), Event(2, "end")], "left alone"),
        ([Event(0, "granted", "a", 9), Event(1, "rebooted", "b", 60)], "a has it until 9"),
        ([Event(0, "rebooted", "b", 60), Event(9, "granted", "a", 19)], "b has booted it"),
    ],
)
def test_the_checker_sees(history: list[Event], says: str) -> None:
    assert says in wrong(history)
