# SPDX-License-Identifier: Apache-2.0
"""Creates an agent from its configuration."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testctl_agent import collect, generators
from testctl_agent.engine.apply import Engine
from testctl_agent.engine.journal import Journal
from testctl_agent.engine.state import AgentState
from testctl_agent.params import registry
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.param import Kind
from testctl_agent.spec.types import Value
from testctl_agent.switch import backend as backends
from testctl_agent.tasks.task import Task


@dataclass(frozen=True)
class AgentConfig:
    """An agent's configuration of its entity.

    devices     host: its device; switch: port ("switch:receiver") → device
    forwarding  switch: MAC address of a host → the device it lies behind
    notes       facts for the entities: "kernel" is the name it was booted under
    """

    name: str
    kind: Kind
    devices: Mapping[str, str]
    workdir: Path
    journal: Path
    backend: str = "netem"
    notes: Mapping[str, str] = field(default_factory=dict)
    forwarding: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> AgentConfig:
        """Of a process of the same version; paths are text."""
        return cls(**{**raw, "workdir": Path(raw["workdir"]), "journal": Path(raw["journal"])})


def new_task(kind: str, name: str, options: Mapping[str, Value], workdir: Path) -> Task:
    """A generator or a collector by the name of its file."""
    package = {"generator": generators, "collector": collect}.get(kind)
    found = pkgutil.iter_modules(package.__path__) if package else ()
    names = {module.name for module in found if not module.name.startswith("_")}
    if package is None or name not in names:
        raise TestbedError(f"no {kind} named {name!r}; there are: {', '.join(sorted(names)) or 'none'}")
    module: Any = importlib.import_module(f"{package.__name__}.{name}")
    task: Task = module.task(options, workdir)
    return task


def _find(kind: str, name: str) -> registry.StateModule | None:
    spec = registry.find(kind, name)
    if spec is None or spec.role != "state":
        return None
    return registry.module(kind, name)


def _parameters(kind: str) -> list[str]:
    return [name for name, spec in registry.specs().get(kind, {}).items() if spec.role == "state" and not spec.pattern]


def prepare(config: AgentConfig, boot: str = "") -> AgentState:
    """The state of an agent; values that a crash left changed are not restored yet.

    boot  for a journal that may outlive it (engine/journal.py)
    """
    devices = tuple(config.devices.values())
    is_switch = config.kind == "switch"
    backend = backends.load(config.backend, config.devices, config.forwarding) if is_switch else None
    entities = [Entity(config.name, config.kind, devices, backend=backend, notes=config.notes)]
    if is_switch:
        entities += [
            Entity(port, "port", (device,), backend=backend, notes=config.notes)
            for port, device in config.devices.items()
        ]
    engine = Engine(entities, _find, Journal(config.journal, boot))
    notes = dict(backend.describe()) if backend else {}
    close = backend.close if backend else lambda: None
    return AgentState(
        config.name, config.kind, engine, config.workdir, new_task, _parameters, notes, close, registry.collectors
    )


def assemble(config: AgentConfig) -> AgentState:
    """The state of an agent; values that a crash left changed are restored first."""
    state = prepare(config)
    state.engine.restore()
    return state
