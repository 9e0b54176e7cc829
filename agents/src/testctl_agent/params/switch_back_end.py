# SPDX-License-Identifier: Apache-2.0
"""The parameters of a switch as a whole, which its back end reads and applies: the name says which."""

from __future__ import annotations

from testctl_agent.params.entity import Entity
from testctl_agent.spec.types import Value

WHOLE = ""
"""What stands for the port where the whole switch is meant."""


def read(entity: Entity, name: str) -> Value:
    if entity.backend is None:
        raise entity.refuse(name, "a value", "its agent was started without a back end")
    return entity.backend.read(WHOLE, name)


def apply(entity: Entity, name: str, value: Value) -> None:
    if entity.backend is None:
        raise entity.refuse(name, value, "its agent was started without a back end")
    entity.backend.apply(WHOLE, name, value)


def needs(entity: Entity, name: str) -> str:
    return entity.backend.can(name) if entity.backend else "its agent was started without a back end"
