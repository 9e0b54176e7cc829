# SPDX-License-Identifier: Apache-2.0
"""Find every parameter below params/KIND/, and refuse incomplete members.

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
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from testctl_agent.params import installed
from testctl_agent.params.members import Member, RegistryError, StateModule, specs_of
from testctl_agent.spec.param import Kind, ParamSpec

KINDS: tuple[Kind, ...] = get_args(Kind)
_KEPT = 1024
"""Names whose parameter is remembered: a family has more members than a peer may make an agent remember."""


@dataclass(frozen=True)
class Registry:
    """The parameters by kind and name, in the order of the names."""

    members: Mapping[Kind, Mapping[str, Member]]

    def specs(self) -> dict[str, dict[str, ParamSpec]]:
        """kind -> name -> spec, in the order of the names."""
        return {kind: {name: member.spec for name, member in named.items()} for kind, named in self.members.items()}

    def find(self, kind: str, name: str) -> ParamSpec | None:
        """The spec of what a plan calls `name`; None when that kind has no such parameter."""
        member = self._member(kind, name)
        if member is None:
            return None
        spec_for = getattr(member.module, "spec_for", None)
        return cast(ParamSpec, spec_for(name)) if spec_for else member.spec

    def module(self, kind: str, name: str) -> StateModule:
        """The file that reads and applies a state parameter; RegistryError when there is none."""
        member = self._member(kind, name)
        if member is None or member.spec.role != "state":
            raise RegistryError(f"{kind}: no state parameter {name!r}")
        return cast(StateModule, member.module)

    def _member(self, kind: str, name: str) -> Member | None:
        named = self.members.get(cast(Kind, kind), {})
        if name in named:
            return named[name]
        return next((member for member in named.values() if member.spec.matches(name)), None)


def load(folder: Path, package: str) -> Registry:
    """Import the members below `folder`, whose package is `package`.  Raises RegistryError."""
    members: dict[Kind, dict[str, Member]] = {}
    for kind in KINDS:
        named: dict[str, Member] = {}
        for file in sorted(p.stem for p in (folder / kind).glob("*.py") if not p.stem.startswith("_")):
            module = importlib.import_module(f"{package}.{kind}.{file}")
            for spec in specs_of(kind, file, module):
                if spec.name in named:
                    other = _file(named[spec.name])
                    raise RegistryError(f"params/{kind}/{file}.py: duplicate of {spec.name} in {other}")
                named[spec.name] = Member(spec, module)
        for name, member in named.items():
            taken = [n for n in named if n != name and member.spec.pattern and member.spec.matches(n)]
            if taken:
                raise RegistryError(f"params/{kind}/{_file(member)}: duplicate: its pattern takes the name {taken[0]}")
        members[kind] = dict(sorted(named.items()))
    for name in members["port"].keys() & members["switch"].keys():
        raise RegistryError(f"params/port: duplicate of params/switch: {name}: a switch takes both")
    return Registry(members)


def _file(member: Member) -> str:
    return f"{member.module.__name__.rpartition('.')[2]}.py"


@functools.cache
def _registry() -> Registry:
    return load(Path(__file__).parent, "testctl_agent.params")


def specs() -> dict[str, dict[str, ParamSpec]]:
    """kind -> name -> spec of every parameter there is."""
    return _registry().specs()


@functools.lru_cache(_KEPT)
def find(kind: str, name: str) -> ParamSpec | None:
    """The spec of what a plan calls `name` on an entity of that kind, or None.

    Raises TestbedError for one of another distribution that is not whole.
    """
    if (own := _registry().find(kind, name)) is not None:
        return own
    other = installed.find(kind, name)
    return other.spec if other else None


@functools.lru_cache(_KEPT)
def module(kind: str, name: str) -> StateModule:
    """read, apply and unavailable of a state parameter; RegistryError when there is none."""
    if not is_own(kind, name) and (other := installed.find(kind, name)) is not None:
        return cast(StateModule, other.module)
    return _registry().module(kind, name)


def is_own(kind: str, name: str) -> bool:
    """Whether the agents have it themselves; nothing is looked up."""
    return _registry().find(kind, name) is not None


def installed_specs() -> dict[str, dict[str, ParamSpec]]:
    """kind -> name -> spec of other distributions' parameters, for lists of all that a plan can contain.

    Raises TestbedError for one that is not whole, or whose name the agents have themselves.
    """
    specs: dict[str, dict[str, ParamSpec]] = {}
    for kind, name in installed.names():
        if is_own(kind, name):
            raise RegistryError(f"{installed.who(kind, name)}: the agents have a parameter of that name themselves")
        member = installed.find(kind, name)
        assert member is not None, "its name is there"
        specs.setdefault(kind, {})[name] = member.spec
    return specs


def collectors(kind: str, wanted: Collection[str] = ()) -> dict[str, str]:
    """The collectors whose file says whether this host or switch can have them: name -> why not, or "".

    wanted: names to look at; none: all
    """
    named = _registry().members.get(cast(Kind, kind), {})
    reasons = {
        name: getattr(member.module, "unavailable", None)
        for name, member in named.items()
        if member.spec.role == "collector" and (not wanted or name in wanted)
    }
    return {name: reason() for name, reason in reasons.items() if reason}
