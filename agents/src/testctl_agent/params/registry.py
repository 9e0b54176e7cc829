# SPDX-License-Identifier: Apache-2.0
"""Find every parameter below params/KIND/, and refuse what is not whole.

A file params/KIND/NAME.py gives `SPEC`, the ParamSpec of that kind and name; or it gives `SPECS`, a list of ParamSpecs
of that kind with names of their own.  For state parameters it also gives

    read(entity, name) -> Value           what the kernel has now
    apply(entity, name, value) -> None    set it; ApplyError says who, wanted and got
    unavailable(entity, name) -> str      why it can't be set here; "" when it can

and it may give

    lasting(entity, name, value) -> str   why a restore would not bring back all that this value changes ("" : it would)

where `name` is the word in the plan, and `value` is whatever `read` returned or the plan's type accepts.  A
collector's file may give `unavailable() -> str`, why its host can't have it ("" when it can).  A family may give
`spec_for(name)`, the ParamSpec of one of its members.  Importing these files must stay cheap: controllers do it for
the specs alone.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast, get_args

from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.param import Kind, ParamSpec
from testctl_agent.spec.types import Value

KINDS: tuple[Kind, ...] = get_args(Kind)
_STATE_FUNCTIONS = ("read", "apply", "unavailable")
_KEPT = 1024
"""Names whose parameter is remembered: a family has more members than a peer may make an agent remember."""


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


@dataclass(frozen=True)
class Registry:
    """The parameters by kind and name, in the order of the names."""

    members: Mapping[Kind, Mapping[str, Member]]

    def specs(self) -> dict[str, dict[str, ParamSpec]]:
        """kind -> name -> spec, in the order of the names."""
        return {kind: {name: found.spec for name, found in named.items()} for kind, named in self.members.items()}

    def find(self, kind: str, name: str) -> ParamSpec | None:
        """The spec of what a plan calls `name`; None when that kind has no such parameter."""
        found = self._member(kind, name)
        if found is None:
            return None
        spec_for = getattr(found.module, "spec_for", None)
        return cast(ParamSpec, spec_for(name)) if spec_for else found.spec

    def module(self, kind: str, name: str) -> StateModule:
        """The file that reads and applies a state parameter; RegistryError when there is none."""
        found = self._member(kind, name)
        if found is None or found.spec.role != "state":
            raise RegistryError(f"{kind}: no state parameter {name!r}")
        return cast(StateModule, found.module)

    def _member(self, kind: str, name: str) -> Member | None:
        named = self.members.get(cast(Kind, kind), {})
        if name in named:
            return named[name]
        return next((found for found in named.values() if found.spec.matches(name)), None)


def load(folder: Path, package: str) -> Registry:
    """Import the members below `folder`, whose package is `package`.  Raises RegistryError."""
    members: dict[Kind, dict[str, Member]] = {}
    for kind in KINDS:
        found: dict[str, Member] = {}
        for file in sorted(p.stem for p in (folder / kind).glob("*.py") if not p.stem.startswith("_")):
            module = importlib.import_module(f"{package}.{kind}.{file}")
            for spec in _specs_of(kind, file, module):
                if spec.name in found:
                    raise RegistryError(
                        f"params/{kind}/{file}.py: duplicate of {spec.name} in {_file(found[spec.name])}"
                    )
                found[spec.name] = Member(spec, module)
        for name, member in found.items():
            taken = [other for other in found if other != name and member.spec.pattern and member.spec.matches(other)]
            if taken:
                raise RegistryError(f"params/{kind}/{_file(member)}: duplicate: its pattern takes the name {taken[0]}")
        members[kind] = dict(sorted(found.items()))
    for name in members["port"].keys() & members["switch"].keys():
        raise RegistryError(f"params/port: duplicate of params/switch: {name}: a switch takes both")
    return Registry(members)


def _file(member: Member) -> str:
    return f"{member.module.__name__.rpartition('.')[2]}.py"


def _specs_of(kind: Kind, file: str, module: ModuleType) -> list[ParamSpec]:
    """What a file gives.  RegistryError names the file, and what it lacks."""
    alone = not hasattr(module, "SPECS")
    specs = [getattr(module, "SPEC", None)] if alone else list(module.SPECS)
    for spec in specs:
        if complaint := _incomplete(kind, file if alone else "", spec, module):
            raise RegistryError(f"params/{kind}/{file}.py: {complaint}")
    return cast(list[ParamSpec], specs)


def _incomplete(kind: Kind, name: str, spec: object, module: ModuleType) -> str:
    """What is wrong with a spec; `name` is what it has to be called, "" for any name."""
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


@functools.cache
def _registry() -> Registry:
    return load(Path(__file__).parent, "testctl_agent.params")


def specs() -> dict[str, dict[str, ParamSpec]]:
    """kind -> name -> spec of every parameter there is."""
    return _registry().specs()


@functools.lru_cache(_KEPT)
def find(kind: str, name: str) -> ParamSpec | None:
    """The spec of what a plan calls `name` on an entity of that kind, or None."""
    return _registry().find(kind, name)


@functools.lru_cache(_KEPT)
def module(kind: str, name: str) -> StateModule:
    """read, apply and unavailable of a state parameter; RegistryError when there is none."""
    return _registry().module(kind, name)


def collectors(kind: str) -> dict[str, str]:
    """The collectors whose file says whether this host or switch can have them: name -> why not, or ""."""
    named = _registry().members.get(cast(Kind, kind), {})
    reasons = {
        name: getattr(found.module, "unavailable", None)
        for name, found in named.items()
        if found.spec.role == "collector"
    }
    return {name: reason() for name, reason in reasons.items() if reason}
