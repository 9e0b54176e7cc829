# SPDX-License-Identifier: Apache-2.0
"""A run's places in the queues of its machines: nobody has them between its points, and who waits has them in turn.

Machines are asked in the order of their names, by every run, so that two runs never wait for each other.
"""

from __future__ import annotations

import getpass
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import grpc
from testctl.system.say import say
from testctl.testbeds.ready import NotOurs
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.errors import TestbedError

from testctl_rack.grpc_agents import Stub
from testctl_rack.inventory_file import Machine, Rack
from testctl_rack.mtls import ANSWER_S, open_channel, read_keys

AGAIN_S = 2.5
"""How often a place is asked about: an agent takes one for left after 12 s (daemon/queue.py)."""
LOOK_S = 1.0
FREE = "free"


def holder(what: str) -> str:
    """The holder of a lease, as shown to those who are refused one."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no name, as in a container
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}, process {os.getpid()}, {what}"


def since(ns: int) -> str:
    """How long something lasts, in the unit that a reader would choose."""
    seconds = ns // 10**9
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def described(reply: pb.QueueReply) -> str:
    """Who has a machine, since when, until when unless its run goes on, and how many wait; FREE where nobody has it."""
    places = list(reply.places)
    left = f", for another {since(reply.left_ns)}" if reply.leased_to else ""
    if not places:
        return f"leased to {reply.leased_to} since {since(reply.leased_ns)}{left}" if left else FREE
    first, *others = places
    waiting = "".join(f"; {place.holder} waits since {since(place.since_ns)}" for place in others)
    return f"leased to {first.holder} since {since(first.since_ns)}{left}{waiting}"


class Reservation:
    """A run calls take(), before each point regain(), and close().  A worker's copy keeps no place: the run's does.

    wait_s: how long to wait for the turn of this run, on all machines together
    """

    def __init__(self, rack: Rack, machines: Iterable[Machine], holder: str, wait_s: float = 0.0) -> None:
        self.ticket = secrets.token_hex(16)
        self._wait_s = wait_s
        self._rack = rack
        self._keys = read_keys(rack.keys)
        self._machines = sorted(machines, key=lambda machine: machine.name)
        self._holder = holder
        self._ended = threading.Event()
        self._queued: list[Machine] = []
        self._threads: list[threading.Thread] = []

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_ended": None, "_queued": list(self._machines), "_threads": [], "_keys": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _ended=threading.Event(), _keys=read_keys(state["_rack"].keys))

    def take(self, say: Callable[[str], None] = say) -> None:
        """Wait until it is this run's turn on every machine.

        Raises TestbedError, and leaves every queue, with who has the machine then.  A machine that does not answer is
        left to the check of all machines, which reports it.
        """
        try:
            until = time.monotonic() + self._wait_s
            for machine in self._machines:
                self._wait(machine, until, say)
        except BaseException:
            self.close()
            raise

    def regain(self) -> None:
        """Wait for the turn again, on all machines, where a place was lost.  Raises NotOurs if it does not come."""
        lost = [machine for machine in self._machines if self._place(machine) != 0]
        if not lost:
            return
        say(f"testctl: this run has lost its place on {', '.join(map(str, lost))}: it did not ask for too long, or an "
            "agent has started again; it waits for its turn")  # fmt: skip
        try:
            self.leave()  # also where it has its place: two runs that wait for each other would never end
            self.take()
        except TestbedError as error:
            raise NotOurs(f"this run has lost its place: {error}") from error

    def _place(self, machine: Machine) -> int:
        """Runs before this one; -1 if it has no place.  One that does not answer is left to what asks it next."""
        try:
            return int(self._ask(machine, keep=True).before)
        except grpc.RpcError:
            return 0

    def _wait(self, machine: Machine, until: float, say: Callable[[str], None]) -> None:
        shown = ""
        while True:
            try:
                reply = self._ask(machine)
            except grpc.RpcError:
                if shown and time.monotonic() < until:  # it was there: the run that has it boots it
                    time.sleep(LOOK_S)
                    continue
                return
            if machine not in self._queued:
                self._queued.append(machine)
                self._threads.append(threading.Thread(target=self._again, args=(machine,), daemon=True))
                self._threads[-1].start()
            if reply.before == 0:
                return
            text = f"{machine}: {described(reply)}"
            if time.monotonic() >= until:
                raise TestbedError(f"{text} (--wait 2h waits for its turn)")
            if text.partition(" since ")[0] != shown:
                shown = text.partition(" since ")[0]
                say(f"testctl: waits: {text}")
            time.sleep(LOOK_S)

    def _ask(self, machine: Machine, leave: bool = False, keep: bool = False) -> pb.QueueReply:
        with open_channel(machine, self._keys) as channel:
            request = pb.QueueRequest(ticket=self.ticket, holder=self._holder, leave=leave, keep=keep)
            reply: pb.QueueReply = Stub(channel).Queue(request, timeout=ANSWER_S)
            return reply

    def _again(self, machine: Machine) -> None:
        """Keep a place, and get none: a lost one is for regain().

        Each machine has a thread: one that boots would keep the others' questions waiting.
        """
        while not self._ended.wait(AGAIN_S):
            with suppress(grpc.RpcError):
                self._ask(machine, keep=True)

    def leave(self) -> None:
        """Leave every queue; a place on a machine that does not answer is given up by its agent."""
        for machine in self._queued:
            with suppress(grpc.RpcError):
                self._ask(machine, leave=True)

    def close(self) -> None:
        """Leave every queue, for good."""
        self._ended.set()
        for thread in self._threads:
            thread.join(LOOK_S)  # so that it does not ask again after this; one of a machine that is gone may stay
        self.leave()
        self._queued.clear()
