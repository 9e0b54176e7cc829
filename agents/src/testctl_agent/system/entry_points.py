# SPDX-License-Identifier: Apache-2.0
"""Generators, switch back ends and parameters of other distributions, by their entry points.

A distribution declares, in its pyproject.toml,

    [project.entry-points."testctl_agent.generators"]   or "testctl_agent.switch_backends", "testctl_agent.parameters"
    trex = "testctl_hardware.trex"

The name is the word in plans, inventories and configurations; the value is the module, which has what a file of
generators/, switch/ or params/ has.  What only one word needs is the optional dependency of that name.  The agent's own
words come first and are never looked up here: importlib.metadata takes longer to import than many modules together,
and it scans directories, so it is used only for another word, and where all words are listed.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from testctl_agent.spec.errors import TestbedError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BMV2 = "testctl-bmv2"
HARDWARE = "testctl-hardware"
"""The distribution of this repository with what has never met hardware (plugins/hardware)."""


class Group:
    """A group of entry points; never changed.

    name      of the group
    what      its members, as errors call them
    function  what each module must have
    known     word → distribution, for the error where that distribution is not installed
    """

    def __init__(self, name: str, what: str, function: str, known: Mapping[str, str]) -> None:
        self.name, self.what, self.function, self.known = name, what, function, known

    def names(self) -> tuple[str, ...]:
        """The words of all installed distributions."""
        return tuple(sorted(_entry_points(self.name)))

    def distribution(self, name: str) -> str:
        """The name of the distribution that brings a word.  Raises TestbedError."""
        return _distribution(self._entry(name))

    def package(self, name: str) -> str:
        """The top-level package of a word's module, which is not imported.  Raises TestbedError."""
        return self._module_name(name).partition(".")[0]

    def module(self, name: str) -> ModuleType:
        """The module of a word.  Raises TestbedError: not installed, brought twice, not importable, incomplete."""
        where = self._module_name(name)
        try:
            module = importlib.import_module(where)
        except (Exception, SystemExit) as error:
            why = f"want the module {where}; got {type(error).__name__}: {error}"
            raise TestbedError(f"{self._who(name)}: {why}") from error
        if not callable(getattr(module, self.function, None)):
            raise TestbedError(f"{self._who(name)}: want a function {self.function} in {where}; got none")
        return module

    def refusal(self, own: Iterable[str], name: object) -> str:
        """ "want one of …; got …" for a word that nobody has; if it is known, with the distribution that brings it."""
        return f"want one of {', '.join(sorted({*own, *self.names()}))}; got {name!r}{self.hint(name)}"

    def hint(self, name: object) -> str:
        """For an error about a word whose distribution is known but not installed; else ""."""
        missing = next((brings for word, brings in self.known.items() if word == name), "")
        return f", which comes with the distribution {missing}: it is not installed" if missing else ""

    def _who(self, name: str) -> str:
        return f"{self.what} {name!r} of the distribution {self.distribution(name)}"

    def _module_name(self, name: str) -> str:
        value = self._entry(name).value
        if not all(part.isidentifier() for part in value.split(".")):
            raise TestbedError(f"{self._who(name)}: want the name of a module; got {value!r}")
        return value

    def _entry(self, name: str) -> EntryPoint:
        entries = _entry_points(self.name).get(name, ())
        if not entries:
            raise TestbedError(f"{self.what}: {self.refusal((), name)}")
        if len(entries) > 1:
            brings = ", ".join(sorted(_distribution(entry) for entry in entries))
            raise TestbedError(f"{self.what} {name!r}: want it of one distribution; got {brings}")
        return entries[0]


GENERATORS = Group("testctl_agent.generators", "generator", "task", {"trex": HARDWARE})
PARAMETERS = Group("testctl_agent.parameters", "parameter", "read", {})
BACKENDS = Group("testctl_agent.switch_backends", "switch back end", "open_backend", {"bmv2": BMV2, "tofino": HARDWARE})


@functools.cache
def _entry_points(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """Word → its entry points: more than one where distributions disagree."""
    from importlib.metadata import entry_points

    entries: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=group):
        entries[entry.name] = (*entries.get(entry.name, ()), entry)
    return entries


def _distribution(entry: EntryPoint) -> str:
    return str(entry.dist.metadata["Name"]) if entry.dist else "?"


def forget() -> None:
    """Look again, after distributions were installed or removed."""
    _entry_points.cache_clear()
