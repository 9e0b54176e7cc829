# SPDX-License-Identifier: Apache-2.0
"""What a switch back end is, and finding one by the name of its file.

A file switch/NAME.py gives `open_backend(ports) -> Backend`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value

PORT_PARAMETERS = ("rate", "delay", "buffer", "ecn_threshold")
"""What the model of a port has.  Rate in bit/s, delay in ns, the others in bytes; "none" is not set."""

UNSET: dict[str, Value] = {"rate": "none", "delay": 0, "buffer": "none", "ecn_threshold": "none"}
"""A port nobody has touched."""


class Backend(Protocol):
    """The switch of one agent; `port` is the device toward a neighbour.

    Errors are ApplyError: who, wanted, got.
    """

    @property
    def name(self) -> str: ...

    def can(self, what: str) -> str:
        """Why a port parameter can't be had here; "" when it can."""
        ...

    def read(self, port: str, what: str) -> Value:
        """The value as it is in force, not as it was asked for."""
        ...

    def apply(self, port: str, what: str, value: Value) -> None: ...

    def describe(self) -> dict[str, str]:
        """Its limitations, in plain words, by name."""
        ...

    def counters(self) -> list[dict[str, object]]:
        """A row for every queue of every port, as in counters_before.json."""
        ...


def names() -> tuple[str, ...]:
    """Every back end there is: the files beside this one."""
    here = Path(__file__)
    return tuple(sorted(p.stem for p in here.parent.glob("*.py") if p.stem not in ("__init__", here.stem)))


def load(name: str, devices: Mapping[str, str]) -> Backend:
    """The back end called `name` for a switch with these devices by port.  Raises TestbedError."""
    if name not in names():
        raise TestbedError(f"switch back end {name!r}: want one of {', '.join(names())}")
    module = importlib.import_module(f"testctl_agent.switch.{name}")
    found: Backend = module.open_backend(tuple(devices.values()))
    return found
