# SPDX-License-Identifier: Apache-2.0
"""The length of a device's transmit queue: what the kernel's default queueing discipline keeps at most."""

from __future__ import annotations

from pathlib import Path

from testctl_agent.params.devices import gather, spread, unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Int, Value

SPEC = ParamSpec("tx_queue_len", "host", "Packets that wait for the device at most", Int(0, 100_000, "packets"))


def read(entity: Entity, name: str) -> Value:
    return gather(entity, lambda device: int(_file(entity, device).read_text()))


def apply(entity: Entity, name: str, value: Value) -> None:
    def one(device: str, wanted: Value) -> None:
        _file(entity, device).write_text(f"{wanted}\n")

    spread(entity, name, value, one)


def unavailable(entity: Entity, name: str) -> str:
    return unavailable_on(entity, lambda device: "" if _file(entity, device).exists() else f"there is no {device}")


def _file(entity: Entity, device: str) -> Path:
    return entity.sys / "class" / "net" / device / "tx_queue_len"
