# SPDX-License-Identifier: Apache-2.0
"""One point on a testbed: set up, exercised, measured and put back.

Knows agents only by their gRPC address, so the lab, namespaces and a rack are the same
to it.  Everything it imports is light: in the lab it runs inside the virtual time.
"""

from __future__ import annotations

import functools
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testctl_agent.spec import fate, untrusted
from testctl_agent.spec.errors import TestbedError, TestctlError, Unavailable
from testctl_agent.wire import agent_pb2 as pb
from testctl_agent.wire import results
from testctl_agent.wire.values import from_wire, options_to_wire, to_wire

from testctl.core.point import PointSpec, Settings, TimedFlow
from testctl.testbeds.agents import CALL_S, Agents

GRACE_NS = 60 * 10**9
"""How long after a flow's nominal end it may still be draining."""

SENDER_FIRST_NS = 10**8
"""How much sooner a flow's sender is stopped: it says since when nothing moves, which its peer's end would change."""

LEAD_NS = 10**8
"""How long before the traffic everything is ready but the clients of its flows."""

CLIENT_NS = 2 * 10**8
"""How much sooner where time is virtual, for each client beyond the first: they are started one after the other."""

FIRST_LEAD_NS, START_LEAD_NS, SLOW_LEAD_NS = 4 * 10**8, 10**8, 2 * 10**9
"""How long before the traffic the last programs are begun where time is real: at least, for each of them on one
agent, and at least with another generator than tgen.  A start takes some ms."""

LATE_NS = 10**6
"""By how much a flow may begin after its time where time is virtual; else it is another experiment."""

Json = dict[str, Any]
Start = tuple[str, str, str, str, Json]
"""agent, task, kind, name, options"""
Facts = Mapping[str, str]


class Skip(Exception):
    """The testbed can't have this point; the text says why."""


def _named(agent: str, setting: pb.Setting) -> str:
    """A parameter among all of an agent: "cc", or "switch:receiver rate" for a port."""
    return setting.parameter if setting.entity == agent else f"{setting.entity} {setting.parameter}"


def owner(entity: str) -> str:
    """The agent that has an entity: a port belongs to its switch."""
    return entity.partition(":")[0]


class PointRun:
    """The life of one point.

    `run()` returns the outcome (see results/README.md) and never leaves an entity changed:
    every way out goes through Restore on all agents.  It raises Skip when a parameter
    can't be had, TestbedError when the testbed failed.  A value that can't be had is a Skip too, but
    not in virtual time: a lab is built for its plans, and lacks nothing that they may ask for.

    hold    called when every generator has been started and waits for its time; it may let the
            traffic pass with nothing else running, and returns at the latest when it is over
    fetch   called with agent, task and the names of its files when a task has ended, for agents that
            do not write where the controller reads
    before, after
            called when everything is set, before the first collector starts and after the last has ended
    attest  compare what every entity is before and after; what drifted is in the outcome's "drift"
    """

    def __init__(
        self,
        point: PointSpec,
        agents: Agents,
        *,
        t0_ns: int | None = None,
        hold: Callable[[], None] = lambda: None,
        fetch: Callable[[str, str, Sequence[str]], None] = lambda agent, task, files: None,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
        attest: bool = False,
    ) -> None:
        self._point = point
        self._agents = agents
        self._t0_ns = t0_ns
        self._hold = hold
        self._fetch = fetch
        self._before, self._after = before, after
        self._attesting = attest
        self._tasks: list[tuple[str, str]] = []  # (agent, task), in the order of their start
        addresses = dict(point.topology.hosts)
        self.outcome: Json = {"entities": {}, "flows": {}, "notes": {}, "error": None, "addresses": addresses}

    def run(self) -> Json:
        before = self._attest()
        self._describe()
        try:
            self._apply()
            self._before()
            t0_ns = self._collect()
            self._traffic(t0_ns)
            self._end_collectors()
            self._after()
        except BaseException as failure:
            self._undo(failure, before)
            raise
        self._restore()
        self.outcome["drift"] = drift(before, self._attest())
        return self.outcome

    def _restore(self) -> None:
        self._agents.all("Restore", {name: pb.RestoreRequest() for name in self._agents.stubs})

    def _undo(self, failure: BaseException, before: Mapping[str, Facts]) -> None:
        """Stop and restore after a failure; what goes wrong here must not hide it."""
        self._stop_all()
        try:
            self._restore()
            self.outcome["drift"] = drift(before, self._attest())
        except TestbedError as error:
            if str(error) != str(failure):
                self.outcome["notes"]["restoring"] = str(error)

    def _attest(self) -> dict[str, Facts]:
        if not self._attesting:
            return {}
        said = self._agents.all("Attest", {name: pb.AttestRequest() for name in self._agents.stubs})
        return {name: dict(reply.facts) for name, reply in said.items()}

    def _settings(self) -> dict[str, list[pb.Setting]]:
        """The state parameters of the point, by agent."""
        by_agent: dict[str, list[pb.Setting]] = {name: [] for name in self._agents.stubs}
        for entity, values in self._point.state.items():
            by_agent[owner(entity)] += [
                pb.Setting(entity=entity, parameter=p, value=to_wire(v)) for p, v in values.items()
            ]
        return by_agent

    def _describe(self) -> None:
        settings = self._settings()
        wanted = {name: [(s.entity, s.parameter) for s in mine] for name, mine in settings.items()}
        for name, collectors in self._point.collect.items():
            wanted.setdefault(name, []).extend((name, collector) for collector in collectors)
        lacking: dict[str, list[str]] = {}
        for name, said in self._agents.all("Describe", {n: pb.DescribeRequest() for n in self._agents.stubs}).items():
            missing = {(c.entity, c.parameter): c.missing for c in said.capabilities if c.missing}
            self.outcome["entities"][name] = {"kind": said.kind}
            self.outcome["kernel"] = said.kernel
            self.outcome["notes"] |= {f"{name}: {key}": text for key, text in said.notes.items()}
            for what in wanted[name]:
                if what in missing:
                    lacking.setdefault(missing[what], []).append(", ".join(what))
                    self.outcome.setdefault("lacking", []).append(list(what))
        if lacking:
            raise Skip("; ".join(f"{' and '.join(whats)}: {why}" for why, whats in lacking.items()))

    def _apply(self) -> None:
        requests = {name: pb.ApplyRequest(settings=mine) for name, mine in self._settings().items() if mine}
        try:
            replies = self._agents.all("Apply", requests)
        except Unavailable as error:
            if self._t0_ns:
                raise
            raise Skip(str(error)) from error
        for name, reply in replies.items():
            if wrong := unlike(requests[name].settings, reply.after):
                raise TestbedError(f"agent {name}: {wrong}")
            entity = self.outcome["entities"][name]
            for when, settings in (("before", reply.before), ("after", reply.after)):
                entity[when] = {_named(name, s): from_wire(s.value) for s in settings}

    def _start(self, agent: str, task: str, kind: str, name: str, options: Json) -> None:
        request = pb.StartRequest(task=task, kind=kind, name=name, options=options_to_wire(options))
        self._tasks.append((agent, task))
        self._agents.call(agent, "Start", request)

    def _start_all(self, wanted: Sequence[Start]) -> None:
        """In this order; where time is real, side by side on different agents."""
        if self._t0_ns:
            self._start_in_turn(wanted)
            return
        by_agent: dict[str, list[Start]] = {}
        for one in wanted:
            by_agent.setdefault(one[0], []).append(one)
        self._agents.each({agent: functools.partial(self._start_in_turn, mine) for agent, mine in by_agent.items()})

    def _start_in_turn(self, wanted: Sequence[Start]) -> None:
        for one in wanted:
            self._start(*one)

    def _collectors(self, t0_ns: int) -> list[Start]:
        """The collectors; samplers look an interval after T0 for the first time.

        No two processes wait for one instant: which of them went first would be decided by what
        happened before.  Every connection and every sampler has its own nanosecond, its turn.
        """
        turn_ns = sum(flow.parallel for flow in self._point.flows)
        found = []
        for agent, collectors in self._point.collect.items():
            for name, options in collectors.items():
                interval_ns = int(options.get("interval_ns", 0))
                first_ns = t0_ns + interval_ns + turn_ns
                found.append((agent, name, "collector", name, {**options, "start_ns": first_ns}))
                turn_ns += 1 if interval_ns else 0
        return found

    def _collect(self) -> int:
        """Start the collectors; returns T0.

        Where time is real, T0 is settled when those have started that need not know it: what is left
        then are the samplers and the flows' own programs.
        """
        t0_ns = self._t0_ns
        if t0_ns:
            self._start_all(self._collectors(t0_ns))
        else:
            begun = time.monotonic_ns()
            self._start_all([one for one in self._collectors(0) if not one[4].get("interval_ns")])
            samplers = [one[0] for one in self._collectors(0) if one[4].get("interval_ns")]
            t0_ns = time.time_ns() + self._lead_ns(samplers, time.monotonic_ns() - begun)
            self._start_all([one for one in self._collectors(t0_ns) if one[4].get("interval_ns")])
        self.outcome["t0_ns"] = t0_ns
        return t0_ns

    def _lead_ns(self, samplers: Sequence[str], took_ns: int) -> int:
        """How long before the traffic the rest is begun: by its number, and by what the collectors before it took."""
        flows = self._point.flows
        most = max(Counter([*samplers, *(flow.sink for flow in flows)]).values(), default=0)
        least = SLOW_LEAD_NS if any(flow.generator != "tgen" for flow in flows) else 0
        return LEAD_NS + max(FIRST_LEAD_NS + most * START_LEAD_NS + took_ns, least)

    def _traffic(self, t0_ns: int) -> None:
        flows = self._point.flows
        before = itertools.accumulate((flow.parallel for flow in flows), initial=0)
        turns_ns = dict(zip((flow.name for flow in flows), before, strict=False))
        self._start_all([self._generator(flow, t0_ns, "server") for flow in flows])
        lead_ns = LEAD_NS + (CLIENT_NS * (len(flows) - 1) if self._t0_ns else 0)
        late_ns = time.time_ns() - (t0_ns - lead_ns)
        if late_ns > 0:
            raise TestbedError(f"setting up took {late_ns / 1e9:.3f} s longer than it may")
        time.sleep(-late_ns / 1e9)
        self._start_all([self._generator(flow, t0_ns + turns_ns[flow.name], "client") for flow in flows])
        self._hold()
        for flow in flows:
            result: Json = {
                "client": self._ended(flow.source, f"{flow.name}-client", flow, t0_ns),
                "server": self._ended(flow.sink, f"{flow.name}-server", flow, t0_ns),
            }
            self.outcome["flows"][flow.name] = result
            if self._t0_ns and (why := late(flow, t0_ns, result["client"])):
                raise TestbedError(why)
        self.outcome["end_ns"] = time.time_ns()

    def _generator(self, flow: TimedFlow, t0_ns: int, side: str) -> Start:
        agent = flow.sink if side == "server" else flow.source
        return agent, f"{flow.name}-{side}", "generator", flow.generator, self._options(flow, t0_ns, side)

    def _options(self, flow: TimedFlow, t0_ns: int, side: str) -> Json:
        start_ns = t0_ns + flow.start_ns
        address = self._point.topology.hosts[flow.sink]
        return {
            **flow.options,
            "side": side,
            "address": address,
            "bind": self._point.topology.hosts[flow.source if side == "client" else flow.sink],
            "server_port": flow.server_port,
            "client_port": flow.client_port,
            "parallel": flow.parallel,
            "start_ns": start_ns,
            "limit_ns": t0_ns + self._point.end_ns(flow) + GRACE_NS - (SENDER_FIRST_NS if side == "client" else 0),
            "seed": self._point.seed,
        }

    def _ended(self, agent: str, task: str, flow: TimedFlow, t0_ns: int) -> Json:
        """Wait for one end of a flow; its result."""
        limit_ns = t0_ns + self._point.end_ns(flow) + GRACE_NS
        wait_ns = max(limit_ns - time.time_ns(), 10**9)
        status = self._agents.call(agent, "Wait", pb.WaitRequest(task=task, timeout_ns=wait_ns), wait_ns / 1e9 + CALL_S)
        if not status.ended:
            raise TestbedError(f"flow {flow.name}: {task} on {agent} did not end within {wait_ns / 1e9:.0f} s")
        if not status.ok:
            why = dropped_again(self._point.state, flow.name) if "timeouts" in status.error else ""
            raise TestbedError(f"flow {flow.name}: {task} on {agent}: {status.error}{why}")
        self._tasks.remove((agent, task))
        self._fetch(agent, task, status.files)
        return result_of(f"{agent}, {task}", status.result, flow.generator)

    def _end_collectors(self) -> None:
        """Last started, first ended; where time is real, side by side on different agents."""
        if self._t0_ns:
            self._end(list(reversed(self._tasks)))
        else:
            by_agent: dict[str, list[tuple[str, str]]] = {}
            for one in reversed(self._tasks):
                by_agent.setdefault(one[0], []).append(one)
            self._agents.each({agent: functools.partial(self._end, mine) for agent, mine in by_agent.items()})
        self._tasks.clear()

    def _end(self, tasks: Sequence[tuple[str, str]]) -> None:
        for agent, task in tasks:
            status = self._agents.call(agent, "Stop", pb.StopRequest(task=task))
            if not status.ok:
                raise TestbedError(f"{agent}, {task}: {status.error or 'did not end'}")
            result_of(f"{agent}, {task}", status.result, task)
            self._fetch(agent, task, status.files)
            self.outcome["notes"][f"{agent}: {task}"] = status.result

    def _stop_all(self) -> None:
        """After a failure: nothing goes on running.  Errors here must not hide the first one."""
        for agent, task in reversed(self._tasks):
            try:
                self._agents.call(agent, "Stop", pb.StopRequest(task=task))
            except TestbedError as error:
                self.outcome["notes"][f"{agent}: {task}"] = str(error)


def result_of(who: str, text: str, name: str) -> Json:
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


def unlike(asked: Iterable[pb.Setting], said: Iterable[pb.Setting]) -> str:
    """What an agent says to have set that is not what was asked, in words; "" when all is."""
    found = {(one.entity, one.parameter): from_wire(one.value) for one in said}
    for one in asked:
        want = from_wire(one.value)
        got = found.get((one.entity, one.parameter))
        if got != want:
            shown = "nothing" if got is None else repr(got)[:80]
            return f"{one.entity}, {one.parameter}: want {want!r}; read back {shown}"
    return ""


def dropped_again(state: Settings, flow: str) -> str:
    """What to say of fates that drop a flow's retransmissions too; "" when there are none."""
    rules = [rule for values in state.values() for rule in fate.parse(str(values.get("fate", fate.NONE)))]
    found = [r for r in rules if r.flow == flow and r.action == "drop" and r.what != "acks" and not r.first]
    if not found:
        return ""
    return f"; the fate {fate.show(found)!r} drops what is sent again too, with ', first' at its end it would not"


def late(flow: TimedFlow, t0_ns: int, client: Json) -> str:
    """What to say of a flow that began later than asked; "" when it did not, or its generator can't tell."""
    start_ns = t0_ns + flow.start_ns
    begun = [one["begin_ns"] for one in client.get("connections", []) if one.get("begin_ns")]
    if not begun or max(begun) - start_ns <= LATE_NS:
        return ""
    return (
        f"flow {flow.name}: want its start {flow.start_ns / 1e6:g} ms after the point's; "
        f"a connection began {(max(begun) - start_ns) / 1e6:g} ms later"
    )


def drift(before: Mapping[str, Facts], after: Mapping[str, Facts]) -> list[str]:
    """What of which entity is not what it was, in words."""
    return [
        f"{name}: {fact} was {facts.get(fact, 'not there')}, is {after[name].get(fact, 'not there')} after the point"
        for name, facts in before.items()
        for fact in sorted(facts.keys() | after[name].keys())
        if facts.get(fact) != after[name].get(fact)
    ]


def outcome_of(runner: PointRun) -> Json:
    """The outcome, whatever happened: with "skip" or "error" when it did not end well."""
    try:
        return runner.run()
    except Skip as reason:
        return runner.outcome | {"skip": str(reason)}
    except TestctlError as error:
        return runner.outcome | {"error": str(error)}


def write_outcome(outcome: Json, path: Path) -> None:
    """The outcome as JSON, whole or not at all."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(outcome, indent=1, sort_keys=True), encoding="utf-8")
    fresh.replace(path)
