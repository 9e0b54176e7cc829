# SPDX-License-Identifier: Apache-2.0
"""What a parameter acts on: an entity's devices, its /proc and /sys, its switch back end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from testctl_agent.spec.errors import ApplyError, Unavailable
from testctl_agent.spec.param import Kind

if TYPE_CHECKING:
    from testctl_agent.switch.backend import Backend


@dataclass(frozen=True)
class Entity:
    """One entity, as the agent in its network namespace sees it.

    devices   a host's network devices, all ports of a switch, the one device of a port
    proc, sys where the namespace's /proc and /sys are (frozen trees in tests)
    backend   the back end of the switch that this is, or that this is a port of
    notes     facts from the process that started the agent: "kernel" is the name it was booted under
    """

    name: str
    kind: Kind
    devices: tuple[str, ...] = ()
    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    backend: Backend | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """The first device; ApplyError when there is none."""
        if not self.devices:
            raise ApplyError(f"{self.kind} {self.name}: has no network device")
        return self.devices[0]

    def refuse(self, parameter: str, wanted: object, why: object) -> ApplyError:
        """The error for a value that can't be set: who, wanted, and why not."""
        return ApplyError(self._refusal(parameter, wanted, why))

    def unavailable(self, parameter: str, wanted: object, why: object) -> Unavailable:
        """The same for one that this kernel or machine can't have at all."""
        return Unavailable(self._refusal(parameter, wanted, why))

    def _refusal(self, parameter: str, wanted: object, why: object) -> str:
        return f"{self.kind} {self.name}, {parameter}: want {wanted}; {why}"
