# SPDX-License-Identifier: Apache-2.0
"""How long GRO collects packets before it hands them up, as a NIC's interrupt coalescing does.

Sets gro_flush_timeout, and napi_defer_hard_irqs to 1 with it: without that the timeout has no
effect.  A device on which the two do not agree reads "20000ns,deferred:0", which apply takes back.
"""

from __future__ import annotations

import re
from pathlib import Path

from testctl_agent.params.devices import gather, spread, unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount, Value
from testctl_agent.spec.units import Duration

SPEC = ParamSpec(
    name="gro_flush",
    kind="host",
    help="How long GRO collects packets before it hands them up; 0ns: only while one poll lasts",
    type=Amount(Duration, most=10**9),
    after=("gro",),
)
_ODD = re.compile(r"([0-9]+)ns,deferred:([0-9]+)")


def _file(entity: Entity, device: str, what: str) -> Path:
    return entity.sys / "class/net" / device / what


def read(entity: Entity, name: str) -> Value:
    def read_device(device: str) -> Value:
        timeout = int(_file(entity, device, "gro_flush_timeout").read_text())
        deferred = int(_file(entity, device, "napi_defer_hard_irqs").read_text())
        return timeout if deferred == int(timeout > 0) else f"{timeout}ns,deferred:{deferred}"

    return gather(entity, read_device)


def apply(entity: Entity, name: str, value: Value) -> None:
    def apply_device(device: str, wanted: Value) -> None:
        odd = _ODD.fullmatch(wanted) if isinstance(wanted, str) else None
        timeout, deferred = (int(odd[1]), int(odd[2])) if odd else (int(wanted), int(int(wanted) > 0))
        _file(entity, device, "napi_defer_hard_irqs").write_text(f"{deferred}\n")
        _file(entity, device, "gro_flush_timeout").write_text(f"{timeout}\n")

    spread(entity, name, value, apply_device)


def unavailable(entity: Entity, name: str) -> str:
    def reason(device: str) -> str:
        file = _file(entity, device, "napi_defer_hard_irqs")
        return "" if file.exists() else f"{file} is not there"

    return unavailable_on(entity, reason)
