# SPDX-License-Identifier: Apache-2.0
"""The interface of a switch back end, and the lookup by the name of its file, or of an entry point.

A file switch/NAME.py, or a module of another distribution (system/entry_points.py), gives

    open_backend(ports, forwarding) -> Backend

ports: the devices, in the order of their P4 ports from 1; forwarding: MAC address → device, or
several of equal cost (spec/ecmp.py).  It cleans up after a crashed predecessor.  Raises TestbedError.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from testctl_agent.spec.ecmp import Stations
from testctl_agent.spec.errors import ApplyError, TestbedError, Unavailable
from testctl_agent.spec.types import Value
from testctl_agent.system.entry_points import BACKENDS

PORT_PARAMETERS = ("rate", "delay", "down", "jitter", "largest", "buffer", "ecn_threshold", "framing", "aqm")
"""What the model of a port has.  Rate in bit/s, delay in ns, the others in bytes; "none" is not set.

A rate, a delay or a largest size may also be the text of a schedule (spec/schedule.py), a rate the text of a
trace (spec/trace.py).  `down`, `jitter` and `aqm` are texts.
"""

SWITCH_PARAMETERS = ("fate", "flows", "ecmp_seed", "program", "entries")
"""A parameter of the switch itself, as text, or a number; its port is ""."""

UNSET: dict[str, Value] = {
    "rate": "none", "delay": 0, "buffer": "none", "ecn_threshold": "none", "framing": 0,
    "down": "none", "jitter": "none", "largest": "none", "aqm": "none", "fate": "none",
    "flows": "none", "ecmp_seed": 0, "program": "none", "entries": "none",
}  # fmt: skip
"""The state of an unconfigured switch."""


_SHOWN = 60


def shown(value: Value) -> str:
    """A value for an error: of a long text its beginning."""
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class Backend(Protocol):
    """The switch of one agent; `port` is the device toward a neighbour, "" the switch itself.

    Errors are ApplyError: who, wanted, got.
    """

    @property
    def name(self) -> str: ...

    def unavailable(self, what: str) -> str:
        """Why a parameter is not supported here; "" if it is."""
        ...

    def read(self, port: str, what: str) -> Value:
        """The value in force, which may differ from the one that was set."""
        ...

    def apply(self, port: str, what: str, value: Value) -> None: ...

    def describe(self) -> dict[str, str]:
        """Name → text of each of its limitations."""
        ...

    def counters(self) -> list[dict[str, object]]:
        """A row for every queue of every port, as in counters_before.json."""
        ...

    def close(self) -> None:
        """Restore the devices."""
        ...


def settable(backend: Backend, port: str, what: str, value: Value) -> bool:
    """Whether a back end without links that change has to set this: what it lacks need not be unset.

    Raises ApplyError for what it lacks, Unavailable for a schedule or a trace.
    """
    if reason := backend.unavailable(what):
        if value == UNSET.get(what):
            return False
        raise ApplyError(f"port {port}, {what}: want {value}; {reason}")
    if what in ("rate", "delay") and isinstance(value, str) and value != UNSET[what]:
        why = f"the back end {backend.name} has no links that change; take the back end ebpf"
        raise Unavailable(f"port {port}, {what}: want {shown(value)}; {why}")
    return True


Open = Callable[[tuple[str, ...], Stations], Backend]

_registered: dict[str, Open] = {}


def register(name: str, open_backend: Open) -> None:
    """Let agents of this process have a back end that is no file here, such as a test double; no plan can name it."""
    _registered[name] = open_backend


@functools.cache
def of_plans() -> tuple[str, ...]:
    """The agent's own back ends that a plan can name: the files of this folder with open_backend()."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.py") if _opens(path)))


def _opens(path: Path) -> bool:
    return bool(re.search(r"^def open_backend\(", path.read_text(encoding="utf-8"), re.MULTILINE))


def _is_own(name: str) -> bool:
    """Whether one of of_plans() has this name; opens its file alone, and none once it is imported."""
    if loaded := sys.modules.get(f"testctl_agent.switch.{name}"):
        return hasattr(loaded, "open_backend")
    path = Path(__file__).with_name(f"{name}.py")
    return name.isidentifier() and path.is_file() and _opens(path)


def own() -> tuple[str, ...]:
    """The back ends that an agent of this process can have without another distribution."""
    return tuple(sorted({*of_plans(), *_registered}))


def load(
    name: str, devices: Mapping[str, str], forwarding: Stations, settings: Mapping[tuple[str, str], Value] | None = None
) -> Backend:
    """The back end called `name` for a switch with these devices by port.  Raises TestbedError.

    settings: all that will be set there, (device or "", parameter) → value, where that is known; a back end that has
    open_narrow() may then leave out what they do not need
    """
    opened, ports = opener(name), tuple(devices.values())
    narrow = getattr(sys.modules.get(opened.__module__), "open_narrow", None) if settings is not None else None
    backend: Backend = narrow(ports, forwarding, settings) if narrow else opened(ports, forwarding)
    return backend


def opener(name: str) -> Open:
    """What opens a back end, which is imported.  Raises TestbedError."""
    if name in _registered:
        return _registered[name]
    if _is_own(name):
        module: Any = importlib.import_module(f"testctl_agent.switch.{name}")
    elif name in BACKENDS.names():
        module = BACKENDS.module(name)
    else:
        raise TestbedError(f"switch back end: {BACKENDS.refusal(own(), name)}")
    opened: Open = module.open_backend
    return opened
