# SPDX-License-Identifier: Apache-2.0
"""Journal, apply, read back, restore: the only implementation, for every parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from testctl_agent.engine import since
from testctl_agent.engine.journal import Entry, Journal, Unreadable
from testctl_agent.engine.values import check, spec_of
from testctl_agent.params.entity import Entity
from testctl_agent.params.members import StateModule as Parameter
from testctl_agent.spec.errors import ApplyError, TestctlError
from testctl_agent.spec.types import Value, shown


@dataclass(frozen=True)
class Setting:
    """A parameter of an entity and the value it is to have, in base units."""

    entity: str
    parameter: str
    value: Value


Find = Callable[[str, str], Parameter | None]
"""(kind of entity, parameter's name) → its file, or None."""


def in_order(settings: Sequence[Setting], after: Callable[[Setting], Iterable[str]]) -> list[Setting]:
    """The settings, ordered so that each comes after those that its spec names in `after`."""
    placed: list[Setting] = []
    waiting = list(settings)
    while waiting:
        for setting in waiting:
            pending = {other.parameter for other in waiting if other.entity == setting.entity}
            if not pending & set(after(setting)):
                break
        else:
            names = ", ".join(s.parameter for s in waiting)
            raise ApplyError(f"{waiting[0].entity}: these parameters each wait for another: {names}")
        placed.append(setting)
        waiting.remove(setting)
    return placed


class Engine:
    """Changes the entities of one agent and restores them.

    All methods raise ApplyError that names entity, parameter, wanted and got.
    """

    def __init__(self, entities: Sequence[Entity], find: Find, journal: Journal) -> None:
        self.entities = {entity.name: entity for entity in entities}
        self._find = find
        self._journal = journal
        self._written = False  # something is in the journal since the last mark
        self._begun: set[since.Key] = set()  # what this process has begun to restore

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
        where, what = self._at(Entry(entity, parameter, "", ""))
        return what.read(where, parameter)

    def unavailable(self, entity: str, parameter: str) -> str:
        """Why a parameter can't be set here; empty when it can."""
        try:
            where, what = self._at(Entry(entity, parameter, "", ""))
            return what.unavailable(where, parameter)
        except TestctlError as error:
            return str(error)

    def apply(self, settings: Sequence[Setting]) -> tuple[list[Setting], list[Setting]]:
        """Set all or none; returns the values before and the values read back."""
        before: list[Setting] = []
        after: list[Setting] = []
        try:
            for setting in settings:
                self._check(setting)
            ordered = in_order(settings, lambda s: spec_of(self._at(s)[1], s.parameter).after)
            for setting, known in zip(ordered, self._write_down_all(ordered), strict=True):
                old, new = self._set(setting, known)
                before.append(old)
                after.append(new)
            self._begun.difference_update((setting.entity, setting.parameter) for setting in after)
            if self._written:
                self._journal.mark("applied")
                self._written = False
        except BaseException as error:
            try:
                self.restore()
            except ApplyError as failure:
                raise ApplyError(f"{error}; and then: {failure}") from error
            raise
        return before, after

    def _check(self, setting: Setting) -> None:
        """Check that the type accepts the value, and that the present value could be restored."""
        entity, parameter = self._at(setting)
        who = f"{entity.kind} {entity.name}, {setting.parameter}"
        check(who, spec_of(parameter, setting.parameter), setting.value)
        lasting: Callable[[Entity, str, Value], str] | None = getattr(parameter, "lasting", None)
        try:
            reason = lasting(entity, setting.parameter, setting.value) if lasting else ""
        except OSError as error:
            raise ApplyError(f"{who}: {error}") from error
        if reason:
            raise ApplyError(f"{who}: want {shown(setting.value)}, which could not be undone: {reason}")

    def _write_down_all(self, settings: Sequence[Setting]) -> list[Entry | None]:
        """Journal all values that will change, in one write, before the first change.

        Returns the entry of each setting; None for one that has its value already, or that can't be read yet: that is
        checked again when it is set.
        """
        known = [self._entry(setting) for setting in settings]
        entries = [entry for entry in known if entry is not None]
        if entries:
            who = f"{self._at(entries[0])[0].kind} {entries[0].entity}, {entries[0].parameter}"
            self._write_down(who, *entries)
        return known

    def _entry(self, setting: Setting) -> Entry | None:
        entity, parameter = self._at(setting)
        try:
            if parameter.unavailable(entity, setting.parameter):
                return None
            value = parameter.read(entity, setting.parameter)
        except (TestctlError, OSError):
            return None
        return None if value == setting.value else Entry(entity.name, setting.parameter, value, setting.value)

    def _set(self, setting: Setting, known: Entry | None) -> tuple[Setting, Setting]:
        """Set one; `known` is its entry in the journal, if it has one."""
        entity, parameter = self._at(setting)
        name = setting.parameter
        who = f"{entity.kind} {entity.name}, {name}"
        if known is not None:
            old = known.value
        elif reason := parameter.unavailable(entity, name):
            raise ApplyError(f"{who}: can't be set to {shown(setting.value)}: {reason}")
        else:
            old = _read(who, parameter, entity, name)
        if old != setting.value:
            if known is None:
                self._write_down(who, Entry(entity.name, name, old, setting.value))
            try:
                parameter.apply(entity, name, setting.value)
            except OSError as error:
                raise ApplyError(f"{who}: can't be set to {shown(setting.value)}: {error}") from error
        got = _read(who, parameter, entity, name)
        if got != setting.value:
            raise ApplyError(f"{who}: want {shown(setting.value)}; read back {shown(got)}")
        return Setting(entity.name, name, old), Setting(entity.name, name, got)

    def _write_down(self, who: str, *entries: Entry) -> None:
        try:
            self._journal.add(*entries)
        except ApplyError as error:
            raise ApplyError(f"{who}: not set: {error}") from error
        self._written = True

    def restore(self) -> list[Setting]:
        """Restore every value in the journal, newest change first.

        Goes on after a failure, keeps the failed entries in the journal and raises ApplyError with all of them.  A
        value that somebody else has changed since is not overwritten: that is a failure, too.  Changes of another boot
        of the machine went with it: nothing is written, and the present value stays.
        """
        restored: list[Setting] = []
        failed: list[Entry | Unreadable] = []
        reasons: list[str] = []
        entries = since.of_this_boot(self._journal.read(), self._journal.boot, self._value)
        theirs = since.theirs(entries, self._journal, self._begun, self._value)
        own = {since.key(entry) for entry in entries if isinstance(entry, Entry)} - theirs.keys()
        if own:
            self._journal.mark("restoring")
        self._begun |= own
        for entry in reversed(entries):
            try:
                if isinstance(entry, Entry) and since.key(entry) in theirs:
                    raise ApplyError(theirs[since.key(entry)])
                restored.append(self._restore_entry(entry))
            except Exception as error:  # noqa: BLE001 -- one that fails, by a bug too, must not keep the others
                failed.insert(0, entry)
                reasons.append(_not_restored(entry, error))
        kept = [replace(e, settled=since.key(e) in theirs) if isinstance(e, Entry) else e for e in failed]
        try:
            self._journal.keep(kept)
        except ApplyError as error:  # what is restored is then restored again
            reasons.append(str(error))
        if reasons:
            raise ApplyError("; ".join(dict.fromkeys(reasons)))
        self._begun.clear()
        return restored

    def _value(self, entry: Entry) -> Value | None:
        """The present value; None if it can't be read."""
        try:
            entity, parameter = self._at(entry)
            return parameter.read(entity, entry.parameter)
        except (TestctlError, OSError, ValueError):
            return None

    def _restore_entry(self, entry: Entry | Unreadable) -> Setting:
        """Restore one entry and read it back."""
        if isinstance(entry, Unreadable):
            raise self._journal.odd(entry)
        entity, parameter = self._at(entry)
        try:
            parameter.apply(entity, entry.parameter, entry.value)
        except (TestctlError, OSError):  # nothing was changed, perhaps because nothing can be
            if parameter.read(entity, entry.parameter) != entry.value:
                raise
        got = parameter.read(entity, entry.parameter)
        if got != entry.value:
            raise ApplyError(f"want {shown(entry.value)}; read back {shown(got)}")
        return Setting(entry.entity, entry.parameter, entry.value)


def _read(who: str, parameter: Parameter, entity: Entity, name: str) -> Value:
    try:
        return parameter.read(entity, name)
    except OSError as error:
        raise ApplyError(f"{who}: can't be read: {error.strerror or error}") from error


def _not_restored(entry: Entry | Unreadable, error: Exception) -> str:
    if isinstance(entry, Unreadable):
        return str(error)
    what = str(error) if isinstance(error, TestctlError | OSError) else f"{type(error).__name__}: {error}"
    return f"{entry.entity}, {entry.parameter}: not restored: {what}"
