# SPDX-License-Identifier: Apache-2.0
"""A parameter file and its required members (registry.py)."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Protocol, cast

from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.param import Kind, ParamSpec
from testctl_agent.spec.types import Value

_STATE_FUNCTIONS = ("read", "apply", "unavailable")


class RegistryError(TestbedError):
    """A parameter file is incomplete, or two give one name."""


class StateModule(Protocol):
    """The file of a state parameter."""

    def read(self, entity: Entity, name: str) -> Value: ...

    def apply(self, entity: Entity, name: str, value: Value) -> None: ...

    def unavailable(self, entity: Entity, name: str) -> str: ...


@dataclass(frozen=True)
class Member:
    """A parameter, or a family of them, and the file that gives it."""

    spec: ParamSpec
    module: ModuleType


def specs_of(kind: Kind, file: str, module: ModuleType) -> list[ParamSpec]:
    """The specs of a file.  RegistryError names the file and the missing member."""
    alone = not hasattr(module, "SPECS")
    specs = [getattr(module, "SPEC", None)] if alone else list(module.SPECS)
    for spec in specs:
        if complaint := incomplete(kind, file if alone else "", spec, module):
            raise RegistryError(f"params/{kind}/{file}.py: {complaint}")
    return cast(list[ParamSpec], specs)


def incomplete(kind: Kind, name: str, spec: object, module: ModuleType) -> str:
    """Why a spec is refused; `name`: the name it must have, "" for any."""
    if not isinstance(spec, ParamSpec):
        return "has no SPEC = ParamSpec(...), nor SPECS = [...] of them"
    if name and spec.name != name:
        return f"SPEC.name is {spec.name!r}, want the name of the file"
    if spec.kind != kind:
        return f"the kind of {spec.name} is {spec.kind!r}, want {kind!r}, the name of the folder"
    if not spec.help:
        return f"the help of {spec.name} is empty"
    lacking = [f for f in _STATE_FUNCTIONS if spec.role == "state" and not callable(getattr(module, f, None))]
    return f"has no function {', '.join(lacking)}" if lacking else ""
