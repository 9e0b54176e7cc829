# SPDX-License-Identifier: Apache-2.0
"""Runs one point on a testbed: setup, traffic, measurement and restore.

Knows agents only by their calls, so the lab, namespaces and a rack are the same
to it.  Everything it imports is light: in the lab it runs inside the virtual time.
"""

from __future__ import annotations

import functools
import itertools
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testctl_agent.params.flow.command import GENERATOR as COMMAND
from testctl_agent.params.port import link
from testctl_agent.spec import schedule, untrusted, workload
from testctl_agent.spec.errors import TestbedError, TestctlError, Unavailable
from testctl_agent.spec.types import Value
from testctl_agent.wire import messages, results
from testctl_agent.wire.messages import plain, plain_options
from testctl_agent.wire.results import FlowEnd

from testctl.core.outcome import Entity, FlowOutcome, Outcome
from testctl.core.point import PointSpec, TimedFlow
from testctl.testbeds.agents import CALL_S, Agents
from testctl.testbeds.traffic_time import Start, TrafficTime

GRACE_NS = 60 * 10**9
"""How long after a flow's nominal end it may still be draining."""

SENDER_FIRST_NS = 10**8
"""How much sooner a flow's sender is stopped: it says since when nothing moves, which its peer's end would change."""

LATE_NS = 10**6
"""By how much a flow may begin after its time where that has to be punctual."""

Facts = Mapping[str, str]


class Skip(Exception):
    """The testbed does not support this point; the text has the reason."""


def _named(agent: str, setting: messages.Setting) -> str:
    """A parameter among all of an agent: "cc", or "switch:receiver rate" for a port."""
    return setting.parameter if setting.entity == agent else f"{setting.entity} {setting.parameter}"


def _turns(flow: TimedFlow) -> int:
    """The connections of a flow that begin at one time, each in its own nanosecond; requests have their own times."""
    return 1 if flow.asks else flow.parallel


def owner(entity: str) -> str:
    """The agent that has an entity: a port belongs to its switch."""
    return entity.partition(":")[0]


@dataclass(frozen=True)
class Hooks:
    """Callbacks of a testbed during a point.

    hold    called when every generator has been started and waits for its time; it may let the
            traffic pass with nothing else running, and returns at the latest when it is over
    fetch   called with agent, task and the names of its files when a task has ended, for agents that
            do not write where the controller reads
    before, after
            called when everything is set, before the first collector starts and after the last has ended
    step_ended
            called with "described", "applied", "collectors" and "generators"
    """

    hold: Callable[[], None] = lambda: None
    fetch: Callable[[str, str, Sequence[str]], None] = lambda agent, task, files: None
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    step_ended: Callable[[str], None] = lambda name: None


class PointRun:
    """The life of one point.

    `run()` returns the outcome and never leaves an entity changed: every way out goes through Restore on
    all agents.  Of a point in parts each is a run of its own, with the agents of its entities.  It raises Skip when a
    parameter or a value can't be had, TestbedError when the testbed failed.
    """

    def __init__(self, point: PointSpec, agents: Agents, time: TrafficTime, hooks: Hooks = Hooks()) -> None:
        self._point = point
        self._agents = agents
        self._time = time
        self._hooks = hooks
        self._tasks: list[tuple[str, str]] = []  # (agent, task), in the order of their start
        self._answer_ns = 0
        topology = point.topology
        both = {host: topology.addresses(host) for host in topology.hosts6}
        self.outcome = Outcome(addresses={**topology.hosts, **both})

    def run(self) -> Outcome:
        before = self._attest()
        self._describe()
        self._hooks.step_ended("described")
        try:
            self._apply()
            self._hooks.step_ended("applied")
            self._hooks.before()
            t0_ns = self.outcome.t0_ns = self._time.collect(
                self._point, self._collectors, self._start_all, self._answer_ns
            )
            self._hooks.step_ended("collectors")
            self._traffic(t0_ns)
            self._end_collectors()
            self._hooks.after()
        except BaseException as failure:
            self._undo(failure, before)
            raise
        self._restore()
        self.outcome.drift = drift(before, self._attest())
        return self.outcome

    def _restore(self) -> None:
        self._agents.all("Restore", {name: messages.RestoreRequest() for name in self._agents.names})

    def _undo(self, failure: BaseException, before: Mapping[str, Facts]) -> None:
        """Stop and restore after a failure; what goes wrong here must not hide it."""
        for agent, task in reversed(self._tasks):
            try:
                self._agents.call(agent, "Stop", messages.StopRequest(task=task))
            except TestbedError as error:
                self.outcome.notes[f"{agent}: {task}"] = str(error)
        try:
            self._restore()
            self.outcome.drift = drift(before, self._attest())
        except TestbedError as error:
            if str(error) != str(failure):
                self.outcome.notes["restoring"] = str(error)

    def _attest(self) -> dict[str, Facts]:
        if not self._time.attests:
            return {}
        begun = time.monotonic_ns()
        actual = self._agents.all("Attest", {name: messages.AttestRequest() for name in self._agents.names})
        self._answer_ns = time.monotonic_ns() - begun
        return {name: dict(reply.facts) for name, reply in actual.items()}

    def _settings(self) -> dict[str, list[messages.Setting]]:
        """The state parameters of the point, by agent."""
        by_agent: dict[str, list[messages.Setting]] = {name: [] for name in self._agents.names}
        for entity, values in self._point.state.items():
            if owner(entity) in by_agent:
                by_agent[owner(entity)] += [
                    messages.Setting(entity=entity, parameter=p, value=plain(v)) for p, v in values.items()
                ]
        return by_agent

    def _describe(self) -> None:
        wanted = {agent: [(s.entity, s.parameter) for s in settings] for agent, settings in self._settings().items()}
        for name, collectors in self._point.collect.items():
            if name in wanted:
                wanted[name].extend((name, collector) for collector in collectors)
        lacking: dict[str, list[str]] = {}
        requests = {
            name: messages.DescribeRequest(parameters=sorted({parameter for _, parameter in wanted[name]}))
            for name in self._agents.names
        }
        for name, reply in self._agents.all("Describe", requests).items():
            missing = {(c.entity, c.parameter): c.missing for c in reply.capabilities if c.missing}
            self.outcome.entities[name] = Entity(reply.kind)
            if reply.kind == "host" or not self.outcome.kernel:
                self.outcome.kernel = reply.kernel
            self.outcome.notes |= {f"{name}: {key}": text for key, text in reply.notes.items()}
            for setting in wanted[name]:
                if setting in missing:
                    lacking.setdefault(missing[setting], []).append(", ".join(setting))
                    self.outcome.lacking.append(setting)
        for entity, parameter in constant(self._point):
            lacking.setdefault(f"the back end {self._point.backend} has no links that change", []).append(
                f"{entity}, {parameter}"
            )
            self.outcome.lacking.append((entity, parameter))
        if lacking:
            raise Skip("; ".join(f"{' and '.join(whats)}: {why}" for why, whats in lacking.items()))

    def _apply(self) -> None:
        requests = {
            agent: messages.ApplyRequest(settings=settings) for agent, settings in self._settings().items() if settings
        }
        try:
            replies = self._agents.all("Apply", requests)
        except Unavailable as error:
            if self._time.lacks_nothing:
                raise
            raise Skip(str(error)) from error
        for name, reply in replies.items():
            if wrong := unlike(requests[name].settings, reply.after):
                raise TestbedError(f"agent {name}: {wrong}")
            entity = self.outcome.entities[name]
            entity.before = {_named(name, s): s.value for s in reply.before}
            entity.after = {_named(name, s): s.value for s in reply.after}

    def _start(self, task: Start) -> None:
        options = plain_options(task.options)
        self._tasks.append((task.agent, task.task))
        request = messages.StartRequest(task=task.task, kind=task.kind, name=task.name, options=options)
        self._agents.call(task.agent, "Start", request)

    def _start_all(self, tasks: Sequence[Start]) -> None:
        own = [task for task in tasks if task.agent in self._agents.names]
        self._time.per_agent(self._agents, [(task.agent, functools.partial(self._start, task)) for task in own])

    def _collectors(self, t0_ns: int) -> list[Start]:
        """The collectors; samplers look an interval after T0 for the first time.

        No two processes wait for one instant: which of them went first would be decided by what
        happened before.  Every connection and every sampler has its own nanosecond, its turn.
        """
        turn_ns = sum(map(_turns, self._point.flows))
        starts = []
        for agent, collectors in self._point.collect.items():
            for name, options in collectors.items():
                interval_ns = int(options.get("interval_ns", 0))
                first_ns = t0_ns if options.get("at_t0") else t0_ns + interval_ns + turn_ns
                starts.append(Start(agent, name, "collector", name, {**options, "start_ns": first_ns}))
                turn_ns += 1 if interval_ns else 0
        return starts

    def _traffic(self, t0_ns: int) -> None:
        flows = self._point.flows
        before = itertools.accumulate(map(_turns, flows), initial=0)
        turns_ns = dict(zip((flow.name for flow in flows), before, strict=False))
        self._start_all([self._generator(flow, t0_ns, "server") for flow in flows])
        late_ns = time.time_ns() - (t0_ns - self._time.lead_ns(len(flows)))
        if late_ns > 0:
            raise TestbedError(f"setting up took {late_ns / 1e9:.3f} s longer than it may")
        time.sleep(-late_ns / 1e9)
        self._start_all([self._generator(flow, t0_ns + turns_ns[flow.name], "client") for flow in flows])
        self._hooks.step_ended("generators")
        self._hooks.hold()
        for flow in flows:
            client = self._ended(flow.source, f"{flow.name}-client", flow, t0_ns)
            if flow.generator == COMMAND and flow.sink in self._agents.names:
                self._agents.call(flow.sink, "Stop", messages.StopRequest(task=f"{flow.name}-server"))
            server = self._ended(flow.sink, f"{flow.name}-server", flow, t0_ns)
            self.outcome.flows[flow.name] = FlowOutcome(client, server)
            if self._time.punctual and (why := late(flow, t0_ns, client)):
                raise TestbedError(why)
        self.outcome.end_ns = time.time_ns()

    def _generator(self, flow: TimedFlow, t0_ns: int, side: str) -> Start:
        agent = flow.sink if side == "server" else flow.source
        address = self._point.topology.address
        options: dict[str, Value] = {
            **flow.options,
            "side": side,
            "address": address(flow.sink, flow.family),
            "bind": address(agent, flow.family),
            "server_port": flow.server_port,
            "client_port": flow.client_port,
            "parallel": flow.parallel,
            "start_ns": t0_ns + flow.start_ns,
            "limit_ns": t0_ns + self._point.end_ns(flow) + GRACE_NS - (SENDER_FIRST_NS if side == "client" else 0),
            "seed": self._point.seed,
            **({"stream": workload.stream_of(self._point.seed, flow.name, flow.options)} if flow.asks else {}),
        }
        return Start(agent, f"{flow.name}-{side}", "generator", flow.generator, options)

    def _ended(self, agent: str, task: str, flow: TimedFlow, t0_ns: int) -> FlowEnd:
        """Wait for one end of a flow; its result, empty for an agent that another run of the point has."""
        if agent not in self._agents.names:
            return FlowEnd()
        limit_ns = t0_ns + self._point.end_ns(flow) + GRACE_NS
        wait_ns = max(limit_ns - time.time_ns(), 10**9)
        request = messages.WaitRequest(task=task, timeout_ns=wait_ns)
        status = self._agents.call(agent, "Wait", request, wait_ns / 1e9 + CALL_S)
        if not status.ended:
            raise TestbedError(f"flow {flow.name}: {task} on {agent} did not end within {wait_ns / 1e9:.0f} s")
        if not status.ok:
            raise TestbedError(f"flow {flow.name}: {task} on {agent}: {status.error}")
        self._tasks.remove((agent, task))
        self._hooks.fetch(agent, task, status.files)
        return FlowEnd.from_json(result_of(f"{agent}, {task}", status.result, flow.generator))

    def _end_collectors(self) -> None:
        """Last started, first ended."""
        ends = [(agent, functools.partial(self._end, agent, task)) for agent, task in reversed(self._tasks)]
        self._time.per_agent(self._agents, ends)
        self._tasks.clear()

    def _end(self, agent: str, task: str) -> None:
        status = self._agents.call(agent, "Stop", messages.StopRequest(task=task))
        if not status.ok:
            raise TestbedError(f"{agent}, {task}: {status.error or 'did not end'}")
        result = result_of(f"{agent}, {task}", status.result, task)
        self._hooks.fetch(agent, task, status.files)
        self.outcome.collected.setdefault(agent, {})[task] = result


def result_of(who: str, text: str, name: str) -> dict[str, Any]:
    """The result of a task of the generator or collector of that name.  Raises TestbedError when it is none."""
    try:
        result = untrusted.loads(text)
    except ValueError as error:
        raise TestbedError(f"{who}: want a result in JSON; got {text[:100]!r} ({error})") from error
    if not isinstance(result, dict):
        raise TestbedError(f"{who}: want a result of names and values; got {text[:100]!r}")
    if why := results.odd(name, result):
        raise TestbedError(f"{who}: its result: {why}")
    return result


def unlike(requested: Iterable[messages.Setting], actual: Iterable[messages.Setting]) -> str:
    """Describes the first value that an agent set differently from the request; "" if there is none."""
    values = {(setting.entity, setting.parameter): setting.value for setting in actual}
    for setting in requested:
        value = values.get((setting.entity, setting.parameter))
        if value != setting.value:
            shown = "nothing" if value is None else repr(value)[:80]
            return f"{setting.entity}, {setting.parameter}: want {setting.value!r}; read back {shown}"
    return ""


def constant(point: PointSpec) -> list[tuple[str, str]]:
    """The (port, parameter) whose value changes over time where the back end has only constants."""
    if point.backend not in link.CONSTANT:
        return []
    return [
        (entity, name)
        for entity, values in point.state.items()
        for name in ("rate", "delay")
        if ":" in entity and isinstance(values.get(name), str) and values[name] != schedule.NONE
    ]


def late(flow: TimedFlow, t0_ns: int, client: FlowEnd) -> str:
    """A note on a flow that began late; "" if it did not, or its generator does not report it."""
    start_ns = t0_ns + flow.start_ns
    begun = [connection.begin_ns for connection in client.connections if connection.begin_ns]
    if not begun or max(begun) - start_ns <= LATE_NS:
        return ""
    return (
        f"flow {flow.name}: want its start {flow.start_ns / 1e6:g} ms after the point's; "
        f"a connection began {(max(begun) - start_ns) / 1e6:g} ms later"
    )


def drift(before: Mapping[str, Facts], after: Mapping[str, Facts]) -> list[str]:
    """Describes every fact that changed between the two attestations."""
    return [
        f"{name}: {fact} was {facts.get(fact, 'not there')}, is {after[name].get(fact, 'not there')} after the point"
        for name, facts in before.items()
        for fact in sorted(facts.keys() | after[name].keys())
        if facts.get(fact) != after[name].get(fact)
    ]


def outcome_of(runner: PointRun) -> Outcome:
    """The outcome in every case; with `skip` or `error` if the point was skipped or failed."""
    try:
        return runner.run()
    except Skip as reason:
        return replace(runner.outcome, skip=str(reason))
    except TestctlError as error:
        return replace(runner.outcome, error=str(error))


def write_outcome(outcome: Outcome, path: Path) -> None:
    """The outcome as JSON, whole or not at all."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(outcome.to_json(), indent=1, sort_keys=True), encoding="utf-8")
    fresh.replace(path)
