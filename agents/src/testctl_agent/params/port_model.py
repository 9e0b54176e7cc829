# SPDX-License-Identifier: Apache-2.0
"""The parameters of a switch port, which its back end reads and applies: the name says which."""

from __future__ import annotations

from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.types import Value
from testctl_agent.switch.backend import Backend


def _backend(entity: Entity, name: str) -> Backend:
    if entity.backend is None:
        raise ApplyError(f"{entity.kind} {entity.name}, {name}: its agent was started without a back end")
    return entity.backend


def read(entity: Entity, name: str) -> Value:
    return _backend(entity, name).read(entity.device, name)


def apply(entity: Entity, name: str, value: Value) -> None:
    _backend(entity, name).apply(entity.device, name, value)


def needs(entity: Entity, name: str) -> str:
    return entity.backend.can(name) if entity.backend else "its agent was started without a back end"
