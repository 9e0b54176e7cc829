# SPDX-License-Identifier: Apache-2.0
"""The time in which a point's traffic passes: what runs in it, and when it is over."""

from __future__ import annotations

import itertools
import os
import re
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import coverage
import kernel_links
import tracing
from early import step_ended
from kernel_state import seed
from testctl.core.point import PointSpec
from testctl.testbeds import point_runner
from testctl_agent.params.flow.command import GENERATOR as COMMAND
from testctl_agent.system.namespace import Place, away

FORGET = Path("/sys/module/testctl_sched/parameters/forget")
SETTLE_NS = 2 * 10**7
"""Before the traffic: the last instant at which anything but generators and collectors runs."""
POLL_NS = 10**7
"""How often it is looked, after the generators' ends, whether connections have ended."""
DRAIN_NS = 2 * 10**8
"""How long no packet passes after the connections' ends, before anything else may run."""
DRAIN_LIMIT_NS = 10**10
"""How long connections may take to end after their generators."""
ALONE_S, END_S = 1.0, 5.0
"""How long the others may go on when the last program has ended, and after SIGTERM."""


class Passive(Protocol):
    """The agents while the traffic passes: they do nothing, and what their namespaces count can be read."""

    def stop(self) -> None: ...

    def go_on(self) -> None: ...

    def net(self, *files: str) -> list[str]:
        """The texts of files of /proc/net, agent by agent."""
        ...


class Here:
    """Agents of this process: it does nothing else."""

    def __init__(self, home: Place, places: list[Place]) -> None:
        self._home, self._places = home, places

    def stop(self) -> None: ...

    def go_on(self) -> None: ...

    def net(self, *files: str) -> list[str]:
        found = []
        for place in self._places:
            with away(self._home, place):
                found += [Path(f"/proc/net/{file}").read_text(encoding="ascii") for file in files]
        return found


class Forked:
    """Processes, which are stopped: an agent may have threads that wake up at times of their own."""

    def __init__(self, processes: list[int]) -> None:
        self._processes = processes

    def stop(self) -> None:
        for pid in self._processes:
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        for pid in self._processes:
            os.kill(pid, signal.SIGCONT)

    def net(self, *files: str) -> list[str]:
        found = itertools.product(self._processes, files)
        return [Path(f"/proc/{pid}/net/{file}").read_text(encoding="ascii") for pid, file in found]


class Traffic:
    """The time in which the traffic passes, and only its programs run.

    A process that reads the clock moves it.  So this process, which runs the point and has no threads, stops the
    agents, sleeps, and lets them go on when the generators have ended.
    """

    def __init__(
        self,
        spec: dict[str, Any],
        point: PointSpec,
        agents: Passive,
        traffic: Callable[[dict[str, Any], PointSpec], Callable[[], None]],
    ) -> None:
        """traffic: given the lab's orders and the point just before the traffic, what lets it pass"""
        self._agents = agents
        self._spec = spec
        self._point = point
        self._traffic = traffic
        self.counted: coverage.Counted | None = None

    def hold(self) -> None:
        """Until the traffic is over."""
        self._agents.stop()
        self._pass()
        self._agents.go_on()

    def _pass(self) -> None:
        """Restart the kernel's random numbers, let the traffic pass, and wait for what is on its way."""
        sleep_until(self._spec["t0_ns"] - SETTLE_NS)
        traffic = self._traffic(self._spec, self._point)
        seed(self._spec["seed"])
        FORGET.write_text("1", encoding="ascii")
        step_ended("traffic")
        if self._point.trace:
            tracing.record()
        if self._point.counts_coverage:
            self.counted = coverage.Counted()
        if self._point.parts:
            kernel_links.join()
            # Each has come as far as its own looks at the clock took it: nothing is to arrive in another's past.
            sleep_until(self._spec["t0_ns"] - SETTLE_NS // 2)
        traffic()
        self._drain(time.time_ns())
        if self._point.parts:
            kernel_links.wait_for_all("drained")
            kernel_links.leave()
        if self.counted is not None:
            self.counted.end()

    def _drain(self, now_ns: int) -> None:
        """Sleep until the connections have ended and their last packets have arrived.

        The kernel ends a connection after its process: what is on its way would meet agents that
        run, and be a few readings of the clock late.
        """
        end_ns = now_ns + DRAIN_LIMIT_NS
        before = None
        while (passed := self._agents.net("dev")) != before and now_ns <= end_ns:
            before = passed
            while connections(self._agents) and now_ns <= end_ns:
                now_ns += POLL_NS
                sleep_until(now_ns)
            now_ns += DRAIN_NS
            sleep_until(now_ns)


def flows(spec: dict[str, Any], point: PointSpec) -> Callable[[], None]:
    """The traffic of a point: sleep until no generator is left, or the point's limit.

    The generators are looked for before the traffic: each look at /proc reads the clock, how often
    depends on how many processes there are, and moves what is on its way.
    """
    endless = {f"{flow.name}-server" for flow in point.flows if flow.generator == COMMAND}
    running = {task: os.pidfd_open(pid) for task, pid in generators()}
    limit_ns = spec["t0_ns"] + max(point.end_ns(flow) for flow in point.flows) + point_runner.GRACE_NS

    def passes() -> None:
        wait_for([fd for task, fd in running.items() if task not in endless], limit_ns)
        if point.parts:
            kernel_links.wait_for_all("ended")
        stop([fd for task, fd in running.items() if task in endless])

    return passes


def stop(servers: list[int]) -> None:
    """End the servers of commands, each a pidfd, that do not end by themselves after their clients."""
    if servers:
        wait_for([os.dup(fd) for fd in servers], time.time_ns() + int(ALONE_S * 1e9))
        for fd in servers:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, signal.SIGTERM)
        wait_for(servers, time.time_ns() + int(END_S * 1e9))


def sleep_until(at_ns: int) -> None:
    """Sleep to an instant of the virtual clock."""
    time.sleep(max(at_ns - time.time_ns(), 0) / 1e9)


def wait_for(processes: list[int], limit_ns: int) -> None:
    """Sleep until all processes have ended, each a pidfd, or an instant of the virtual clock."""
    ends = select.poll()
    for fd in processes:
        ends.register(fd, select.POLLIN)
    left = set(processes)
    while left and (left_ns := limit_ns - time.time_ns()) > 0:
        for fd, _ in ends.poll(left_ns / 10**6):
            ends.unregister(fd)
            left.discard(fd)
    for fd in processes:
        os.close(fd)


def generators() -> list[tuple[str, int]]:
    """Tasks and processes of generators that have not ended: those whose errors go to a flow's directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            task = Path(os.readlink(path / "fd" / "2")).parent.name
        except OSError:
            continue  # ended, or a kernel thread
        if task.endswith(("-client", "-server")):
            found.append((task, int(path.name)))
    return found


def connections(agents: Passive) -> int:
    """TCP sockets of the agents' network namespaces, those without a process too, but not in TIME-WAIT."""
    texts = agents.net("sockstat", "sockstat6")
    return sum(int(count) for text in texts for count in re.findall(r"^TCP6?: inuse (\d+)", text, re.MULTILINE))
