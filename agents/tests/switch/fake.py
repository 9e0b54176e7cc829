# SPDX-License-Identifier: Apache-2.0
"""A switch that is only a table, for tests: it can be made to fail at any step.

`fail_at` is the number of the step, counted from 1 over all calls of read and apply, that raises
ApplyError; a step that fails changes nothing.  `steps` lists what was called.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from testctl_agent.spec.ecmp import Stations
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.types import Value
from testctl_agent.switch.backend import PORT_PARAMETERS, SWITCH_PARAMETERS, UNSET, register


@dataclass
class FakeBackend:
    """The back end `fake` (switch/backend.register).  `cannot` gives the reason for each parameter that it lacks."""

    ports: tuple[str, ...]
    fail_at: int = 0
    cannot: dict[str, str] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    state: dict[tuple[str, str], Value] = field(default_factory=dict)
    name: str = "fake"

    def unavailable(self, what: str) -> str:
        if what not in (*PORT_PARAMETERS, *SWITCH_PARAMETERS):
            return f"a port has no {what}"
        return self.cannot.get(what, "")

    def read(self, port: str, what: str) -> Value:
        self._step(f"read {port} {what}", port, what)
        return self.state.get((port, what), UNSET[what])

    def apply(self, port: str, what: str, value: Value) -> None:
        self._step(f"apply {port} {what} {value}", port, what)
        self.state[port, what] = value

    def describe(self) -> dict[str, str]:
        return {"forwarding": "fake: no packet is forwarded"}

    def counters(self) -> list[dict[str, object]]:
        return []

    def close(self) -> None:
        self.steps.append("close")

    def _step(self, text: str, port: str, what: str) -> None:
        self.steps.append(text)
        if port not in self.ports and (port or what not in SWITCH_PARAMETERS):
            raise ApplyError(f"port {port}, {what}: want one of the ports {', '.join(self.ports)}")
        if reason := self.unavailable(what):
            raise ApplyError(f"port {port}, {what}: {reason}")
        if len(self.steps) == self.fail_at:
            raise ApplyError(f"port {port}, {what}: step {self.fail_at} ({text}) fails as asked")


def open_backend(ports: tuple[str, ...], forwarding: Stations) -> FakeBackend:
    return FakeBackend(ports)


register("fake", open_backend)
