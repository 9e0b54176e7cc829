# SPDX-License-Identifier: Apache-2.0
"""Journal, apply, read back, restore: written here once, for every parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from testctl_agent.engine.journal import Entry, Journal
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import ApplyError, TestctlError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Value


@dataclass(frozen=True)
class Setting:
    """A parameter of an entity and the value it is to have, in base units."""

    entity: str
    parameter: str
    value: Value


class Parameter(Protocol):
    """A parameter file, as the engine sees it."""

    SPEC: ParamSpec

    def read(self, entity: Entity, name: str) -> Value: ...

    def apply(self, entity: Entity, name: str, value: Value) -> None: ...

    def needs(self, entity: Entity, name: str) -> str: ...


Find = Callable[[str, str], Parameter | None]
"""(kind of entity, parameter's name) → its file, or None."""


def shown(value: Value) -> str:
    """A value as a plan writes it."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def in_order(settings: Sequence[Setting], after: Callable[[Setting], Iterable[str]]) -> list[Setting]:
    """The settings with each one behind those of its entity that it comes after."""
    placed: list[Setting] = []
    waiting = list(settings)
    while waiting:
        for setting in waiting:
            mine = {other.parameter for other in waiting if other.entity == setting.entity}
            if not mine & set(after(setting)):
                break
        else:
            names = ", ".join(s.parameter for s in waiting)
            raise ApplyError(f"{waiting[0].entity}: these parameters each wait for another: {names}")
        placed.append(setting)
        waiting.remove(setting)
    return placed


class Engine:
    """Changes the entities of one agent and brings them back.

    All methods raise ApplyError that names entity, parameter, wanted and got.
    """

    def __init__(self, entities: Sequence[Entity], find: Find, journal: Journal) -> None:
        self.entities = {entity.name: entity for entity in entities}
        self._find = find
        self._journal = journal

    def _at(self, setting: Setting | Entry) -> tuple[Entity, Parameter]:
        entity = self.entities.get(setting.entity)
        if entity is None:
            have = ", ".join(sorted(self.entities))
            raise ApplyError(f"{setting.entity}: not an entity of this agent, which has {have}")
        parameter = self._find(entity.kind, setting.parameter)
        if parameter is None:
            raise ApplyError(f"{entity.kind} {entity.name}: no parameter {setting.parameter}")
        return entity, parameter

    def read(self, entity: str, parameter: str) -> Value:
        """The value a parameter has now."""
        where, what = self._at(Entry(entity, parameter, ""))
        return what.read(where, parameter)

    def missing(self, entity: str, parameter: str) -> str:
        """Why a parameter can't be set here; empty when it can."""
        try:
            where, what = self._at(Entry(entity, parameter, ""))
            return what.needs(where, parameter)
        except TestctlError as error:
            return str(error)

    def apply(self, settings: Sequence[Setting]) -> tuple[list[Setting], list[Setting]]:
        """Set all or none; returns the values before and the values read back."""
        before: list[Setting] = []
        after: list[Setting] = []
        try:
            for setting in in_order(settings, lambda s: self._at(s)[1].SPEC.after):
                old, new = self._set(setting)
                before.append(old)
                after.append(new)
        except BaseException:
            self.restore()
            raise
        return before, after

    def _set(self, setting: Setting) -> tuple[Setting, Setting]:
        entity, parameter = self._at(setting)
        name = setting.parameter
        who = f"{entity.kind} {entity.name}, {name}"
        if reason := parameter.needs(entity, name):
            raise ApplyError(f"{who}: can't be set to {shown(setting.value)}: {reason}")
        old = parameter.read(entity, name)
        if old != setting.value:
            self._journal.add(Entry(entity.name, name, old))
            parameter.apply(entity, name, setting.value)
        got = parameter.read(entity, name)
        if got != setting.value:
            raise ApplyError(f"{who}: want {shown(setting.value)}; read back {shown(got)}")
        return Setting(entity.name, name, old), Setting(entity.name, name, got)

    def restore(self) -> list[Setting]:
        """Everything back to what the journal says, newest change first.

        Goes on past what fails, keeps that in the journal and raises ApplyError with all
        that failed.
        """
        entries = self._journal.entries()
        restored: list[Setting] = []
        failed: list[Entry] = []
        reasons: list[str] = []
        for entry in reversed(entries):
            try:
                entity, parameter = self._at(entry)
                parameter.apply(entity, entry.parameter, entry.value)
                got = parameter.read(entity, entry.parameter)
                if got != entry.value:
                    raise ApplyError(f"want {shown(entry.value)}; read back {shown(got)}")
                restored.append(Setting(entry.entity, entry.parameter, entry.value))
            except (TestctlError, OSError) as error:
                failed.insert(0, entry)
                reasons.append(f"{entry.entity}, {entry.parameter}: not restored: {error}")
        self._journal.keep(failed)
        if reasons:
            raise ApplyError("; ".join(reasons))
        return restored
