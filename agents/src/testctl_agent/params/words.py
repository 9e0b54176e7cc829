# SPDX-License-Identifier: Apache-2.0
"""Words that other distributions can add to: generators and switch back ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from testctl_agent.spec.types import Choice, Value
from testctl_agent.system.entry_points import BACKENDS, GENERATORS, Group


class Word(Choice):
    """One of the agent's own words (`values`), or one that an installed distribution brings.

    Entry points are looked up only for a word that is not the agent's own, and where all are listed.
    """

    group: Group

    @property
    def want(self) -> str:
        return Choice(self._all()).want

    def parse(self, raw: object) -> Value:
        if isinstance(raw, str) and (raw in self.values or raw in self.group.names()):
            return raw
        raise ValueError(self.group.refusal(map(str, self.values), raw))

    def schema(self) -> dict[str, Any]:
        return Choice(self._all()).schema()

    def brought(self, names: Iterable[str]) -> list[str]:
        """The names that are not the agent's own."""
        return [name for name in names if name not in self.values]

    def packages(self, names: Iterable[str]) -> set[str]:
        """The packages of other distributions that bring some of these names.  Raises TestbedError."""
        return {self.group.package(name) for name in self.brought(names)}

    def _all(self) -> tuple[str, ...]:
        return tuple(sorted({*map(str, self.values), *self.group.names()}))


class GeneratorWord(Word):
    """Of a generator."""

    group = GENERATORS


class BackendWord(Word):
    """Of a switch back end."""

    group = BACKENDS
