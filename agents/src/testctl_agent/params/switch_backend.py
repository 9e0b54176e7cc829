# SPDX-License-Identifier: Apache-2.0
"""The parameters of a switch and of its ports, which its back end reads and applies: the name says which."""

from __future__ import annotations

from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.types import Value
from testctl_agent.switch.backend import Backend

WHOLE_SWITCH = ""
"""Stands for the port where a parameter is of the whole switch."""
_NO_BACKEND = "its agent was started without a back end"


def _backend(entity: Entity, name: str) -> tuple[Backend, str]:
    """The back end, and which port of it is meant."""
    if entity.backend is None:
        raise ApplyError(f"{entity.kind} {entity.name}, {name}: {_NO_BACKEND}")
    return entity.backend, entity.device if entity.kind == "port" else WHOLE_SWITCH


def read(entity: Entity, name: str) -> Value:
    backend, port = _backend(entity, name)
    return backend.read(port, name)


def apply(entity: Entity, name: str, value: Value) -> None:
    backend, port = _backend(entity, name)
    backend.apply(port, name, value)


def unavailable(entity: Entity, name: str) -> str:
    return entity.backend.unavailable(name) if entity.backend else _NO_BACKEND
