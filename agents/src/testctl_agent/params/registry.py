# SPDX-License-Identifier: Apache-2.0
"""Find every parameter by the name of its file, and refuse what is not whole.

A file params/KIND/NAME.py gives `SPEC`, a ParamSpec of that kind and name.  For a state
parameter it also gives

    read(entity, name) -> Value           what the kernel has now
    apply(entity, name, value) -> None    set it; ApplyError says who, wanted and got
    needs(entity, name) -> str            "" when it can be set here, else why not

and it may give

    lasting(entity, name, value) -> str   why a restore would not bring back all that this value changes ("" : it would)

where `name` is the word in the plan (it matters for families such as sysctls), and `value` is
whatever `read` returned or the plan's type accepts.  A collector's file may give `missing() -> str`,
why its host can't have it ("" when it can).  A family may give `spec_for(name)`, the
ParamSpec of one of its members.  Importing these files must stay cheap: controllers do it for
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
_STATE_FUNCTIONS = ("read", "apply", "needs")
_KEPT = 1024
"""Names whose parameter is remembered: a family has more members than a peer may make an agent remember."""


class RegistryError(TestbedError):
    """A parameter file is incomplete, or two claim one name."""


class StateModule(Protocol):
    """A state parameter's file."""

    SPEC: ParamSpec

    def read(self, entity: Entity, name: str) -> Value: ...

    def apply(self, entity: Entity, name: str, value: Value) -> None: ...

    def needs(self, entity: Entity, name: str) -> str: ...


@dataclass(frozen=True)
class Registry:
    """The members by kind and file name."""

    members: Mapping[Kind, Mapping[str, ModuleType]]

    def specs(self) -> dict[str, dict[str, ParamSpec]]:
        """kind -> name -> spec, in the order of the names."""
        return {kind: {name: spec(found) for name, found in files.items()} for kind, files in self.members.items()}

    def find(self, kind: str, name: str) -> ParamSpec | None:
        """The spec of what a plan calls `name`; None when that kind has no such parameter."""
        found = self._member(kind, name)
        if found is None:
            return None
        spec_for = getattr(found, "spec_for", None)
        return cast(ParamSpec, spec_for(name)) if spec_for else spec(found)

    def module(self, kind: str, name: str) -> StateModule:
        """The file that reads and applies a state parameter; RegistryError when there is none."""
        found = self._member(kind, name)
        if found is None or spec(found).role != "state":
            raise RegistryError(f"{kind}: no state parameter {name!r}")
        return cast(StateModule, found)

    def _member(self, kind: str, name: str) -> ModuleType | None:
        files = self.members.get(cast(Kind, kind), {})
        if name in files:
            return files[name]
        return next((found for found in files.values() if spec(found).matches(name)), None)


def spec(member: ModuleType) -> ParamSpec:
    return cast(ParamSpec, member.SPEC)


def load(folder: Path, package: str) -> Registry:
    """Import the members below `folder`, whose package is `package`.  Raises RegistryError."""
    members: dict[Kind, dict[str, ModuleType]] = {}
    for kind in KINDS:
        names = sorted(p.stem for p in (folder / kind).glob("*.py") if not p.stem.startswith("_"))
        members[kind] = {name: importlib.import_module(f"{package}.{kind}.{name}") for name in names}
        for name, found in members[kind].items():
            if complaint := _incomplete(kind, name, found) or _doubled(name, found, members[kind]):
                raise RegistryError(f"params/{kind}/{name}.py: {complaint}")
    for name in members["port"].keys() & members["switch"].keys():
        raise RegistryError(f"params/port/{name}.py: duplicate of params/switch/{name}.py: a switch takes both")
    return Registry(members)


def _incomplete(kind: Kind, name: str, found: ModuleType) -> str:
    given = getattr(found, "SPEC", None)
    if not isinstance(given, ParamSpec):
        return "has no SPEC = ParamSpec(...)"
    if given.name != name:
        return f"SPEC.name is {given.name!r}, want the name of the file"
    if given.kind != kind:
        return f"SPEC.kind is {given.kind!r}, want {kind!r}, the name of the folder"
    if not given.help:
        return "SPEC.help is empty"
    wanted = [f for f in _STATE_FUNCTIONS if given.role == "state" and not callable(getattr(found, f, None))]
    return f"has no function {', '.join(wanted)}" if wanted else ""


def _doubled(name: str, found: ModuleType, files: Mapping[str, ModuleType]) -> str:
    taken = [other for other in files if other != name and spec(found).pattern and spec(found).matches(other)]
    return f"duplicate: its pattern takes the name of {taken[0]}.py" if taken else ""


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
    """read, apply and needs of a state parameter; RegistryError when there is none."""
    return _registry().module(kind, name)


def collectors(kind: str) -> dict[str, str]:
    """The collectors whose file tells whether this host or switch can have them: name -> why not, or ""."""
    files = _registry().members.get(cast(Kind, kind), {})
    return {name: found.missing() for name, found in files.items() if callable(getattr(found, "missing", None))}
