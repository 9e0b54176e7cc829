# SPDX-License-Identifier: Apache-2.0
"""The queue for a lease: turns, who leaves, who is dead, and what those without a place are refused with."""

from __future__ import annotations

import pytest
from testctl_agent.daemon.lease import Leases
from testctl_agent.daemon.queue import MOST, SEEN_S, Queue
from testctl_agent.engine.refusals import BadRequest, HeldByOther, LimitReached


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(clock: Clock) -> Leases:
    return Leases("host alpha", lambda: (), clock=clock)


def test_first_come_first_served(clock: Clock) -> None:
    queue = Queue("host alpha", clock)
    assert [queue.ask(ticket, ticket) for ticket in "abca"] == [0, 1, 2, 0]
    assert queue.refusal("a") == ""
    clock.now += 5
    assert queue.refusal("b") == "leased to a, whose run began 5 s ago, and 2 more wait"
    assert queue.refusal("") == queue.refusal("b")
    queue.leave("a")
    assert [queue.ask(ticket, ticket) for ticket in "bc"] == [0, 1]


def test_who_does_not_ask_again_has_left(clock: Clock) -> None:
    queue = Queue("host alpha", clock)
    queue.ask("a", "a")
    clock.now += SEEN_S - 1
    assert queue.ask("b", "b") == 1
    clock.now += 2
    assert queue.ask("b", "b") == 0
    assert queue.ask("a", "a") == 1, "it comes last"


@pytest.mark.parametrize("ticket", ["", "x" * 65, "a\nb"])
def test_what_is_no_ticket(clock: Clock, ticket: str) -> None:
    with pytest.raises(BadRequest, match="host alpha: want a ticket"):
        Queue("host alpha", clock).ask(ticket, "a")


def test_it_has_an_end(clock: Clock) -> None:
    queue = Queue("host alpha", clock)
    for number in range(MOST):
        queue.ask(str(number), "a")
    with pytest.raises(LimitReached):
        queue.ask("one more", "a")


def test_a_run_keeps_its_turn_between_its_leases(leases: Leases, clock: Clock) -> None:
    """Nobody gets a lease between two points, with a ticket or without; then the next in the queue."""
    assert leases.queue("a", "ann").before == 0
    assert leases.queue("b", "bob").before == 1
    for _ in range(2):
        grant = leases.acquire("ann", 10, "a")
        clock.now += 8
        leases.queue("b", "bob")
        leases.renew(grant.token)
        clock.now += 8
        leases.release(grant.token)
        for ticket in ("", "b"):
            with pytest.raises(HeldByOther, match="host alpha: leased to ann, whose run began"):
                leases.acquire("bob", 10, ticket)
        leases.queue("a", "ann")
    leases.queue("a", "ann", leave=True)
    assert leases.queue("b", "bob").before == 0
    leases.acquire("bob", 10, "b")


def test_a_run_whose_lease_ran_out_has_left(leases: Leases, clock: Clock) -> None:
    """It is dead or cut off: the next one does not wait for its place, too.  If it comes back, it is the last one."""
    leases.queue("a", "ann")
    leases.queue("b", "bob")
    leases.acquire("ann", 3, "a")
    clock.now += 2.9
    assert not leases.expire()
    assert leases.queue("b", "bob").before == 1
    clock.now += 0.2
    assert leases.expire()
    assert leases.queue("b", "bob").before == 0
    assert leases.queue("a", "ann").before == 1
    leases.acquire("bob", 3, "b")
    clock.now += 3.1
    assert leases.expire()
    assert leases.acquire("ann", 3, "a").holder == "ann"


def test_what_a_stranger_sees(leases: Leases, clock: Clock) -> None:
    assert leases.queue("", "").places == []
    leases.queue("a", "ann")
    leases.acquire("ann", 10, "a")
    clock.now += 3
    leases.queue("b", "bob")
    seen = leases.queue("", "")
    assert (seen.leased_to, seen.leased_s, seen.left_s) == ("ann", 3.0, 7.0)
    assert seen.places == [("ann", 3.0), ("bob", 0.0)]
