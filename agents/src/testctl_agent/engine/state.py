# SPDX-License-Identifier: Apache-2.0
"""The state of a service, independent of how it is started."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testctl_agent.engine.apply import Engine
from testctl_agent.engine.tasks import TaskFactory
from testctl_agent.system.identity import version


@dataclass
class AgentState:
    """The state of a service.

    parameters  for Describe: every parameter each entity could have
    collectors  for Describe: collectors that this entity may lack, and why ("": it has it)
    workdir     where tasks write; a task's files lie in a directory of its name
    close       called last, when everything is restored
    version     for Describe: which code it runs (system/identity.py)
    """

    name: str
    kind: str
    engine: Engine
    workdir: Path
    new_task: TaskFactory
    parameters: Callable[[str], list[str]]
    notes: Mapping[str, str] = field(default_factory=dict)
    close: Callable[[], None] = lambda: None
    collectors: Callable[[str, Collection[str]], Mapping[str, str]] = lambda kind, wanted: {}
    version: Callable[[], str] = version

    @property
    def who(self) -> str:
        """As errors name it: "host alpha"."""
        return f"{self.kind} {self.name}"

    @property
    def devices(self) -> tuple[str, ...]:
        """Every device of its entities."""
        return tuple(dict.fromkeys(d for entity in self.engine.entities.values() for d in entity.devices))
