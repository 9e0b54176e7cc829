# SPDX-License-Identifier: Apache-2.0
"""Agents of a rack: a lease on each, and a plan's names turned into theirs.

A lease is renewed by a thread, four times while it lasts.  An agent that does not answer for most of
that time, or not one call within CALL_S, is lost: its channel is closed, and a thread that waits for a flow's end waits
no longer.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
from testctl.testbeds.agents import CALL_S
from testctl.testbeds.at_once import AtOnce
from testctl_agent.daemon import LEASE_KEY
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon.protobuf import from_protobuf, to_protobuf
from testctl_agent.spec.errors import PlanError, TestbedError, Unavailable
from testctl_agent.spec.untrusted import loads
from testctl_agent.wire import messages
from testctl_agent.wire.messages import Message
from testctl_agent.wire.results import odd

from testctl_rack.grpc_agents import Stub, message_of
from testctl_rack.inventory_file import Rack
from testctl_rack.mtls import ANSWER_S, HELD, below, can_not, explain, open_channel, read_keys, write_checked
from testctl_rack.placement import Placement

LEASE = "TESTCTL_LEASE_S"
"""Environment variable: the lifetime of a lease in seconds."""
LEASE_S = 10.0
CALL = "TESTCTL_CALL_S"
"""Environment variable: the seconds that an agent has to answer a call, CALL_S by default."""
LOOKED_S = 3.0
"""How long to wait for a lease of another controller, which may hold it only briefly."""
RESTORE_S = 30.0
"""How long to wait, at least, for an agent to restore what a point before has left, whose lease it lost."""
LATE = grpc.StatusCode.DEADLINE_EXCEEDED
CLOCK_NS = 20 * 10**6
"""Maximum difference of a machine's clock from the controller's: a fifth of the lead before the traffic."""
DEVICE_OPTIONS = ("device", "devices")
TELEMETRY = "telemetry"
"""The collector whose result names devices."""
CALLS = "TESTCTL_CALLS"
"""Environment variable: a file that logs the begin and end of every call."""


class RemoteAgents(AtOnce):
    """The agents of a placement's machines, by the plan's names.

    Used as a context, it holds a lease on each: `__enter__` raises TestbedError when one can't be
    had, with who has it.
    """

    def __init__(self, rack: Rack, placement: Placement, holder: str, ticket: str = "") -> None:
        keys = read_keys(rack.keys)
        self._placement = placement
        self._holder = holder
        self._ticket = ticket
        self._tokens: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self.clocks_ns: dict[str, tuple[int, int]] = {}
        self._calls = os.environ.get(CALLS, "")
        self._lease_s = seconds(LEASE, LEASE_S, 1, 60)
        self._call_s = seconds(CALL, CALL_S, 1, 600)
        self._moved_ns: dict[str, int] = {}
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, daemon=True)
        super().__init__(placement.machines)
        self._channels = {name: open_channel(machine, keys) for name, machine in placement.machines.items()}
        self.stubs = {name: Stub(channel) for name, channel in self._channels.items()}

    def __enter__(self) -> RemoteAgents:
        self._renewing.start()  # a lease that is had must not end while the next one is waited for
        try:
            for name in sorted(self.stubs):
                self._acquire(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._renewing.join()
        self._release()
        self.close()

    def close(self) -> None:
        super().close()
        for channel in self._channels.values():
            channel.close()

    def machine(self, name: str) -> str:
        """The machine behind a plan's name, for errors."""
        return str(self._placement.machines[name])

    def call(self, name: str, method: str, request: Message, timeout_s: float = CALL_S) -> Any:
        if name in self._lost:
            raise TestbedError(self._lost[name])
        message = to_protobuf(request)
        self._note(name, method, "begins")
        try:
            if isinstance(message, pb.WaitRequest):
                reply = self._wait(name, message)
            else:
                reply = self._ask(name, method, self._outward(name, message), timeout_s)
        except (grpc.RpcError, ValueError) as error:  # ValueError: the channel was closed by the renewing thread
            if isinstance(error, grpc.RpcError) and can_not(error):
                raise Unavailable(message_of(error)) from error
            if isinstance(error, grpc.RpcError) and error.code() is LATE and timeout_s >= CALL_S:
                self._lose(name, error)
            raise TestbedError(self._lost.get(name) or explain(self.machine(name), error)) from error
        self._note(name, method, "ended")
        return from_protobuf(self._inward(name, message, reply))

    def _note(self, name: str, method: str, what: str) -> None:
        if self._calls:
            with open(self._calls, "a", encoding="utf-8") as file:
                file.write(f"{time.time_ns()} {name} {method} {what}\n")

    def _ask(self, name: str, method: str, request: Any, timeout_s: float) -> Any:
        """One call; the caller reads a stream of replies to its end."""
        metadata = [(LEASE_KEY, self._tokens[name])] if name in self._tokens else []
        if timeout_s >= CALL_S:
            timeout_s += self._call_s - CALL_S
        return getattr(self.stubs[name], method)(request, timeout=timeout_s, metadata=metadata)

    def _wait(self, name: str, request: pb.WaitRequest) -> pb.TaskStatus:
        """Wait for a task's end, as long as no agent is lost: a flow to a dead host ends late or never."""
        until_ns = time.monotonic_ns() + request.timeout_ns
        while True:
            left_ns = max(until_ns - time.monotonic_ns(), 0)
            slice_ns = min(left_ns, int(self._lease_s / 4 * 1e9))
            status: pb.TaskStatus = self._ask(
                name, "Wait", pb.WaitRequest(task=request.task, timeout_ns=slice_ns), slice_ns / 1e9 + CALL_S
            )
            if status.ended or slice_ns == left_ns:
                return status
            for lost in self._lost.values():
                raise TestbedError(lost)

    def fetch(self, name: str, task: str, file: str, into: Path) -> None:
        """Copy a file that a task wrote into a directory; whole, with its checksum, or not at all."""
        what = f"{self.machine(name)}, {task}, {file}"
        to = below(into, file, f"{self.machine(name)}, {task}")
        self._note(name, "Fetch", "begins")
        try:
            chunks = self._ask(name, "Fetch", pb.FetchRequest(task=task, file=file), CALL_S)
            write_checked(chunks, to, what)
        except (grpc.RpcError, ValueError) as error:
            raise TestbedError(self._lost.get(name) or explain(self.machine(name), error)) from error
        self._note(name, "Fetch", "ended")

    def _outward(self, name: str, request: Any) -> Any:
        """The request with the machine's own names."""
        place = self._placement
        if isinstance(request, pb.ApplyRequest):
            copies = [
                pb.Setting(entity=place.out(s.entity), parameter=s.parameter, value=s.value) for s in request.settings
            ]
            return pb.ApplyRequest(settings=copies)
        if isinstance(request, pb.StartRequest):
            copy = pb.StartRequest()
            copy.CopyFrom(request)
            for option in DEVICE_OPTIONS:
                if option in copy.options:
                    devices = copy.options[option].text.split(",")
                    copy.options[option].text = ",".join(place.device(name, device) for device in devices)
            return copy
        return request

    def _inward(self, name: str, request: Any, reply: Any) -> Any:
        """The reply with the plan's names."""
        if isinstance(reply, pb.TaskStatus) and request.task == TELEMETRY:
            reply.result = _with_names(reply.result, self._placement.devices_back(name))
        if isinstance(reply, pb.ApplyReply | pb.RestoreReply | pb.Description):
            rows = {"ApplyReply": ("before", "after"), "RestoreReply": ("restored",), "Description": ("capabilities",)}
            for field in rows[type(reply).__name__]:
                for row in getattr(reply, field):
                    row.entity = self._placement.back(name, row.entity)
        return reply

    def _acquire(self, name: str) -> None:
        """Acquire the lease; waits for an agent that is being restarted, or that restores what this run has left."""
        lifetime_ns = int(self._lease_s * 1e9)
        request = messages.AcquireRequest(holder=self._holder, lifetime_ns=lifetime_ns, ticket=self._ticket)
        patience_s = {HELD: LOOKED_S, grpc.StatusCode.UNAVAILABLE: self._lease_s}
        ours = "".join(self._holder.rpartition(", ")[:2])  # of a point before, whose agent was lost
        begun = time.monotonic()
        while True:
            before_ns = time.time_ns()
            try:
                lease = self.call(name, "Acquire", request, ANSWER_S)
                break
            except TestbedError as error:
                code = error.__cause__.code() if isinstance(error.__cause__, grpc.RpcError) else None
                most_s = max(self._lease_s, RESTORE_S) if ours and ours in str(error) else patience_s.get(code, 0)
                if time.monotonic() - begun > most_s:
                    raise
                time.sleep(0.1)
        self.clocks_ns[name] = offset(before_ns, lease.time_ns, time.time_ns())
        self._tokens[name] = lease.token

    def _renew(self) -> None:
        heard: dict[str, float] = {}
        while not self._ended.wait(self._lease_s / 4):
            renewals: dict[str, Callable[[], None]] = {}
            for name in self._tokens.keys() - self._lost.keys():
                heard.setdefault(name, time.monotonic())
                with suppress(ValueError):  # a call has just given this agent up, and closed its channel
                    renewals[name] = self._renewal(name)
            for name, end in renewals.items():
                try:
                    end()
                    heard[name] = time.monotonic()
                except grpc.RpcError as error:
                    if name in self._lost:
                        continue
                    answered = error.code() not in (grpc.StatusCode.UNAVAILABLE, LATE)
                    if answered or time.monotonic() - heard[name] > 0.7 * self._lease_s:
                        self._lose(name, error)

    def _renewal(self, name: str) -> Callable[[], None]:
        """Begin one renewal, so that no lease waits for somebody else's dead host; its end looks at the clock."""
        before_ns = time.time_ns()
        ended_ns: list[int] = []
        metadata = [(LEASE_KEY, self._tokens[name])]
        future = self.stubs[name].Renew.future(pb.RenewRequest(), timeout=self._lease_s / 4, metadata=metadata)
        future.add_done_callback(lambda _: ended_ns.append(time.time_ns()))

        def end() -> None:
            lease = future.result()
            offset_ns, error_ns = offset(before_ns, lease.time_ns, ended_ns[0] if ended_ns else time.time_ns())
            first_ns, first_error_ns = self.clocks_ns[name]
            moved_ns = abs(offset_ns - first_ns) - error_ns - first_error_ns
            self._moved_ns[name] = max(moved_ns, self._moved_ns.get(name, 0))

        return end

    def clock_steps(self, most_ns: int) -> list[str]:
        """Texts for the machines whose clock moved against the controller's by more than that."""
        for name in sorted(self._tokens.keys() - self._lost.keys()):
            with suppress(grpc.RpcError, ValueError):
                self._renewal(name)()
        return [
            f"{self.machine(name)}: its clock moved by {moved_ns / 1e9:.3f} s or more during the point"
            for name, moved_ns in sorted(self._moved_ns.items())
            if moved_ns > most_ns
        ]

    def _lose(self, name: str, error: grpc.RpcError) -> None:
        self._lost[name] = f"{explain(self.machine(name), error)}; its lease is lost"
        self._channels[name].close()

    def _release(self) -> None:
        """Release the leases; an agent that is not reachable ends its lease itself."""
        for name in sorted(self._tokens):
            with suppress(grpc.RpcError, ValueError):
                self._note(name, "Release", "begins")
                self._ask(name, "Release", pb.ReleaseRequest(), CALL_S)
                self._note(name, "Release", "ended")
        self._tokens.clear()


def _with_names(text: str, names: Mapping[str, str]) -> str:
    """A telemetry's result with its switch's ports named like their neighbours; what is no result as it is."""
    with suppress(ValueError):
        result = loads(text)
        if not odd(TELEMETRY, result) and "ports" in result:
            ports = {number: names.get(device, device) for number, device in result["ports"].items()}
            return json.dumps(result | {"ports": ports})
    return text


def seconds(name: str, default: float, least: int, most: int) -> float:
    """A length of time that the environment may set.  Raises PlanError."""
    text = os.environ.get(name, "")
    try:
        value_s = float(text or default)
    except ValueError:
        value_s = 0.0
    if not least <= value_s <= most:
        raise PlanError(f"{name}: want seconds from {least} to {most}; got {text!r}")
    return value_s


def offset(before_ns: int, theirs_ns: int, after_ns: int) -> tuple[int, int]:
    """(how far their clock is ahead, at most how wrong that is), from one exchange."""
    return theirs_ns - (before_ns + after_ns) // 2, (after_ns - before_ns) // 2
