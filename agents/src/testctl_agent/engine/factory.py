# SPDX-License-Identifier: Apache-2.0
"""Creates an agent from its configuration."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from testctl_agent import collect, generators
from testctl_agent.engine.apply import Engine
from testctl_agent.engine.journal import Journal
from testctl_agent.engine.state import AgentState
from testctl_agent.params import registry
from testctl_agent.params.entity import Entity
from testctl_agent.params.flow.command import GENERATOR as COMMAND
from testctl_agent.params.members import StateModule
from testctl_agent.params.others import packages
from testctl_agent.spec.ecmp import Stations
from testctl_agent.spec.errors import TestbedError, TestctlError
from testctl_agent.spec.param import Kind
from testctl_agent.spec.types import Value
from testctl_agent.switch import backend as backends
from testctl_agent.system.entry_points import GENERATORS
from testctl_agent.system.identity import version
from testctl_agent.tasks.task import Task

THREADED = frozenset({("generator", "probe"), ("collector", "clock")})
"""Tasks that are threads of their agent (tasks/thread_task.py)."""

SINGLE_THREADED = frozenset({"ebpf", "netem"})
"""Back ends."""

_PACKAGES = {"generator": generators, "collector": collect}


@dataclass(frozen=True)
class AgentConfig:
    """An agent's configuration of its entity.

    devices     host: its device; switch: port ("switch:receiver") → device
    forwarding  switch: MAC address of a host → the device it lies behind, or several of equal cost
    notes       facts for the entities: "kernel" is the name it was booted under
    generators  of other distributions that it may run; None: whichever is installed
    commands    whether it runs the commands of a plan: never an agent that others can call
    settings    what will be set, entity → parameter → value, where that is known beforehand; None: anything
    version     of its code, where the process that starts it knows; "": to be read from the files
    """

    name: str
    kind: Kind
    devices: Mapping[str, str]
    workdir: Path
    journal: Path
    backend: str = "netem"
    notes: Mapping[str, str] = field(default_factory=dict)
    forwarding: Stations = field(default_factory=dict)
    generators: tuple[str, ...] | None = None
    commands: bool = False
    version: str = ""
    settings: Mapping[str, Mapping[str, Value]] | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> AgentConfig:
        """Of a process of the same version; paths are text."""
        return cls(**{**raw, "workdir": Path(raw["workdir"]), "journal": Path(raw["journal"])})


def new_task(
    kind: str,
    name: str,
    options: Mapping[str, Value],
    workdir: Path,
    others: Collection[str] | None = None,
    commands: bool = False,
) -> Task:
    """A generator or a collector by the name of its file, or a generator of another distribution.

    others    generators of other distributions that are allowed; None: whichever is installed
    commands  whether the generator `command`, which runs any program, is allowed
    """
    task: Task = _task_module(kind, name, others, commands).task(options, workdir)
    return task


def _task_module(kind: str, name: str, others: Collection[str] | None, commands: bool) -> Any:
    names = own_tasks(kind)
    if kind == "generator" and not commands:
        names -= {COMMAND}
        if name == COMMAND:
            raise TestbedError(f"generator {COMMAND!r}: this agent runs no commands; want the testbed lab or netns")
    if name in names:
        return importlib.import_module(f"{_PACKAGES[kind].__name__}.{name}")
    if kind != "generator":
        raise TestbedError(f"no {kind} named {name!r}; there are: {', '.join(sorted(names)) or 'none'}")
    allowed = GENERATORS.names() if others is None else others
    if name not in allowed:
        known = ", ".join(sorted({*names, *allowed}))
        raise TestbedError(f"no generator named {name!r}; there are: {known}{_missing(name)}")
    return GENERATORS.module(name)


@functools.cache
def own_tasks(kind: str) -> frozenset[str]:
    """The agent's own generators or collectors."""
    modules = pkgutil.iter_modules(_PACKAGES[kind].__path__) if kind in _PACKAGES else ()
    return frozenset(module.name for module in modules if not module.name.startswith("_"))


def load_code(tasks: Iterable[tuple[str, str]], backend: str = "") -> None:
    """Import what agents with these tasks, (kind, name) each, and this back end will need, before they are forked.

    What can't be imported is reported by the agent that needs it.
    """
    registry.specs()
    for kind, name in tasks:
        with suppress(TestctlError):
            _task_module(kind, name, None, commands=True)
    if backend:
        with suppress(TestctlError):
            backends.opener(backend)


def without_threads(tasks: Iterable[tuple[str, str]], backend: str, parameters: Iterable[tuple[str, str]]) -> bool:
    """Whether agents with these tasks, this back end and these parameters start no thread.

    Code of another distribution may start threads; BMv2 is reached by gRPC, which does.
    """
    wanted = set(tasks)
    own = all(name in own_tasks(kind) for kind, name in wanted) and backend in SINGLE_THREADED
    return own and not wanted & THREADED and all(registry.is_own(kind, name) for kind, name in parameters)


def _missing(name: str) -> str:
    """Why this agent does not run a known generator; "" for an unknown name."""
    if name in GENERATORS.names():
        return f"; want {name} among the generators of the agent's configuration (testctl_generators in the inventory)"
    return f"; {name!r}{hint}" if (hint := GENERATORS.hint(name)) else ""


def _find(kind: str, name: str) -> StateModule | None:
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
    backend = (
        backends.load(config.backend, config.devices, config.forwarding, _by_device(config)) if is_switch else None
    )
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
        config.name,
        config.kind,
        engine,
        config.workdir,
        partial(new_task, others=config.generators, commands=config.commands),
        _parameters,
        notes,
        close,
        registry.collectors,
        partial(_version, config),
    )


def _by_device(config: AgentConfig) -> dict[tuple[str, str], Value] | None:
    """The settings of a switch by device; "" is the switch itself."""
    if config.settings is None:
        return None
    return {
        (config.devices.get(entity, ""), parameter): value
        for entity, values in config.settings.items()
        for parameter, value in values.items()
    }


def _version(config: AgentConfig) -> str:
    if config.version:
        return config.version
    other = config.backend if config.kind == "switch" and config.backend not in backends.own() else ""
    return version(packages(config.generators or (), other))


def assemble(config: AgentConfig) -> AgentState:
    """The state of an agent; values that a crash left changed are restored first."""
    state = prepare(config)
    state.engine.restore()
    return state
