# SPDX-License-Identifier: Apache-2.0
"""Random schedules of holders that are paused, partitioned, slow or dead, against the real lease, and a checker.

A holder also boots the machine: it tells the agent (Boot), and root of the machine, in a call that any pause may delay,
orders a reboot if the file that the agent has written is this holder's.  The agent that starts again has that file.

One thread: the lease's condition is replaced by one whose wait goes on with the schedule, and its clock is a number.
A holder sends calls; the network delivers each at once, late, twice, not at all, or loses the answer; a holder that is
paused goes on later with the token it had.  The agent's lease thread wakes late, and a restore may fail.  A seed gives
one schedule, whatever machine it runs on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from testctl_agent.daemon.boots import Boot, Boots
from testctl_agent.daemon.lease import MAX_RETRY_S, MAX_S, Leases
from testctl_agent.engine.apply import Setting
from testctl_agent.engine.refusals import Refusal
from testctl_agent.spec.errors import ApplyError

HOLDERS, STEPS = 4, 150
REBOOT_S = 2.0
"""As in the controller's boot_once.py."""


class Died(BaseException):
    """The agent's machine reboots within whatever it does."""


class Store(Boots):
    """The file that outlives the agent."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def note(self, ticket: str, holder: str, limit_s: float) -> None:
        self.noted = Boot(ticket, holder, limit_s, str(self._world.boot))


@dataclass(frozen=True)
class Event:
    """What the agent did, and when."""

    at: float
    what: str
    holder: str = ""
    until: float = 0.0


class Condition:
    """A condition of one thread: what it waits for happens because the schedule goes on."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def notify_all(self) -> None: ...

    def wait_for(self, happened: Callable[[], bool]) -> None:
        while not happened():
            self._world.others_step()


@dataclass
class Holder:
    """One controller: `token` is what it believes to have; calls that are under way lie in the network."""

    name: str
    token: str = ""


@dataclass
class World:
    """The agent, its holders, the network between, and what happened."""

    seed: int
    new: Callable[..., Leases] = Leases
    now: float = 1000.0
    changed: bool = False
    failing: bool = False
    cleaning: bool = False
    history: list[Event] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # token → holder
    network: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    changes: list[Any] = field(default_factory=list)  # that are under way: what ends each
    fenced: bool = True  # whether root looks at the file
    boot: int = 0
    reboot: tuple[float, str] = (0.0, "")  # that is ordered: when, and by whom

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.holders = [Holder(f"holder {number}") for number in range(HOLDERS)]
        self.store = Store(self)
        self.start()

    def start(self) -> None:
        """The agent starts."""
        self.leases = self.new("host alpha", self.clean, "", lambda: self.now, boots=self.store)
        self.leases._change = Condition(self)  # type: ignore[assignment]

    def passes(self, seconds: float) -> None:
        """Time passes.  Raises Died at the time of a reboot that was ordered."""
        at, holder = self.reboot
        if not holder or at > self.now + seconds:
            self.now += seconds
            return
        self.now, self.reboot = max(at, self.now), (0.0, "")
        self.log("rebooted", holder, self.now + (self.store.noted.limit_s if self.store.noted else 0.0))
        raise Died

    def starts_again(self) -> None:
        """After a reboot: nothing is changed any more, and no call is under way."""
        self.boot += 1
        self.changes.clear()
        self.changed = self.cleaning = False
        self.now += self.random.choice((0.5, 3.0))
        self.start()

    def log(self, what: str, holder: str = "", until: float = 0.0) -> None:
        self.history.append(Event(self.now, what, holder, until))

    # The agent

    def clean(self) -> Sequence[Setting]:
        """The end of a lease: time passes in it, and others call meanwhile."""
        self.log("clean begins")
        self.cleaning = True
        for _ in range(self.random.randrange(3)):
            self.others_step()
        self.cleaning = False
        if self.failing and self.random.random() < 0.7:
            self.log("clean fails")
            raise ApplyError("alpha, mtu: not restored: Too many open files")
        self.changed = False
        self.log("clean ends")
        return []

    def lease_thread(self) -> None:
        """What Leases.run does when it wakes, which may be late."""
        if self.leases._wait_s() == 0 and not self.leases.expire():
            self.leases.retry()

    # The calls, as they arrive

    def _name(self, token: str) -> str:
        return self.names.get(token, "nobody")

    def acquire(self, holder: Holder, answered: bool) -> None:
        wanted = self.random.choice((0.2, 1.0, 5.0, 10.0, 60.0))
        grant = self.leases.acquire(holder.name, wanted, holder.name)
        self.names[grant.token] = holder.name
        self.log("granted", holder.name, self.now + grant.lifetime_s)
        if answered:
            holder.token = grant.token

    def renew(self, holder: Holder, token: str) -> None:
        grant = self.leases.renew(token)
        self.log("renewed", self._name(token), self.now + grant.lifetime_s)

    def release(self, holder: Holder, token: str) -> None:
        self.leases.check(token, "Release")
        self.log("released", self._name(token))
        self.leases.release(token)

    def change(self, holder: Holder, token: str) -> None:
        """An Apply: it begins now and ends in a later step."""
        using = self.leases.using(token, "Apply")
        using.__enter__()
        self.changed = True
        self.log("change begins", self._name(token))

        def end() -> None:
            self.changed = True
            self.log("change ends", self._name(token))
            using.__exit__(None, None, None)

        self.changes.append(end)

    def boots(self, holder: Holder, token: str) -> None:
        """Boot; its answer may be late, and so may be what root is asked for then."""
        self.leases.boot(token, self.random.choice((5.0, 60.0)))
        self.log("boot noted", self._name(token))
        self.network.append((self.now + self.random.choice((0.0, 1.0, 10.0, 70.0)), lambda: self.root(holder)))

    def root(self, holder: Holder) -> None:
        """boot_once.py."""
        noted = self.store.noted
        if self.fenced and (not noted or (noted.ticket, noted.boot) != (holder.name, str(self.boot))):
            return
        if not self.reboot[1]:
            self.reboot = (self.now + REBOOT_S, holder.name)

    def leave(self, holder: Holder, token: str) -> None:
        self.leases.queue(holder.name, holder.name, leave=True)
        self.log("left", holder.name)

    def look(self, holder: Holder, token: str) -> None:
        self.leases.check(token, "Wait")
        self.log("looked", self._name(token))

    # The schedule

    def send(self, holder: Holder) -> None:
        """A call of a holder, and what the network makes of it."""
        what = "acquire"
        if holder.token and self.random.random() < 0.97:
            what = self.random.choice((*3 * ["change"], *2 * ["renew"], "look", "release", *2 * ["boots"], "leave"))
        token, answered = holder.token, self.random.random() < 0.85
        call = getattr(self, what)

        def arrives() -> None:
            try:
                call(holder, answered if what == "acquire" else token)
            except Refusal:
                gone = token == holder.token
            else:
                gone = what == "release"
            if gone and answered and what != "acquire":
                holder.token = ""

        fate = self.random.random()
        if fate < 0.6:
            self.network.append((self.now, arrives))
        elif fate < 0.9:  # slow, and now and then twice: by a retry of the layer below
            for _ in range(1 + (self.random.random() < 0.2)):
                self.network.append((self.now + self.random.expovariate(1 / 10), arrives))
        # else it is lost

    def deliver(self) -> None:
        due = [one for one in self.network if one[0] <= self.now]
        if due:
            one = self.random.choice(due)
            self.network.remove(one)
            one[1]()

    def end_a_change(self) -> None:
        if self.changes:
            self.changes.pop(self.random.randrange(len(self.changes)))()

    def others_step(self) -> None:
        """A step of anything but the lease thread, which is in the midst of its own."""
        self.passes(self.random.choice((0.0, 0.0, 0.1, 3.0)))
        if self.random.random() < 0.5:
            self.end_a_change()
        else:
            self.send(self.random.choice(self.holders))
            if not self.changes or self.random.random() < 0.5:
                self._deliver_unless_it_waits()

    def _deliver_unless_it_waits(self) -> None:
        """While a lease ends only: then no call can end one, and wait in turn."""
        if self.leases._ending:
            self.deliver()

    def step(self) -> None:
        try:
            self._step()
        except Died:
            self.starts_again()

    def _step(self) -> None:
        kind = self.random.random()
        if kind < 0.3:
            self.send(self.random.choice(self.holders))
        elif kind < 0.6:
            self.deliver()
        elif kind < 0.75:
            self.end_a_change()
        elif kind < 0.85:
            self.lease_thread()
        elif kind < 0.88:
            self.failing = not self.failing
        elif kind < 0.99:
            self.passes(self.random.choice((0.05, 0.1, 0.5, 2.0)))
        else:  # the agent itself stands still: everything is late when it goes on
            self.passes(self.random.choice((15.0, 61.0, 3600.0)))

    def run(self) -> list[Event]:
        """The history of one schedule, with its end: holders are gone, failures are over, the agent is left alone."""
        for _ in range(STEPS):
            self.step()
        self.log("left alone")
        self.network.clear()
        self.failing = False
        self.reboot = (0.0, "")
        while self.changes:
            self.end_a_change()
        end = self.now + MAX_S + 2 * MAX_RETRY_S
        while self.now < end:
            wait_s = self.leases._wait_s()
            if wait_s is None:
                break
            self.now += wait_s
            self.network.clear()  # what others_step sent
            self.lease_thread()
            while self.changes:
                self.end_a_change()
        self.log("end", until=float(self.changed))
        return self.history


def wrong(history: Sequence[Event]) -> str:
    """What a history shows that must never be; "": nothing."""
    holder, until = "", 0.0
    restored, cleaning, under_way = True, False, 0
    booted, kept = "", 0.0  # who has booted the machine, and until when nobody else has its lease
    for number, event in enumerate(history):
        where = f"event {number}, {event}"
        if event.what == "granted":
            if holder and event.at < until:
                return f"{where}: two holders; {holder} has it until {until}"
            if not restored or cleaning or under_way:
                return f"{where}: not everything is restored"
            if event.at < kept and booted != event.holder:
                return f"{where}: {booted} has booted it, and has its place until {kept}"
            holder, until, kept = event.holder, event.until, 0.0
        elif event.what in ("renewed", "looked", "released", "change begins", "boot noted"):
            if event.holder != holder or event.at >= until or cleaning:
                return f"{where}: by who has it not; {holder or 'nobody'} has it until {until}"
            until = event.until or until
        elif event.what == "rebooted":
            if holder not in ("", event.holder) and event.at < until:
                return f"{where}: {holder} has it until {until}"
            booted, kept, holder, until = event.holder, event.until, "", 0.0
            restored, cleaning, under_way = True, False, 0
        elif event.what == "left" and event.holder == booted:
            kept = 0.0
        if event.what == "change begins":
            restored, under_way = False, under_way + 1
        elif event.what == "change ends":
            if cleaning or not under_way:
                return f"{where}: a change within a restore"
            under_way -= 1
        elif event.what == "clean begins":
            if under_way:
                return f"{where}: a restore within a change"
            if (
                holder
                and event.at < until
                and history[number - 1].what != "released"
                and not _released(history, number)
            ):
                return f"{where}: the lease of {holder} ends before its time, {until}"
            cleaning, holder, until = True, "", 0.0
        elif event.what in ("clean ends", "clean fails"):
            cleaning, restored = False, event.what == "clean ends"
        elif event.what == "end" and (event.until or not restored or cleaning or (holder and event.at < until)):
            return f"{where}: left alone, and not restored"
    return ""


def _released(history: Sequence[Event], number: int) -> bool:
    """Whether the lease that ends at an event was released since it was granted."""
    for event in reversed(history[:number]):
        if event.what in ("granted", "released"):
            return event.what == "released"
    return False
