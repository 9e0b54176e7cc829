# SPDX-License-Identifier: Apache-2.0
"""The kernel that runs: a plan asks for it, a testbed boots it, an agent can only confirm it."""

from __future__ import annotations

import os

from testctl_agent.params.entity import Entity
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Text, Value

SPEC = ParamSpec(
    name="kernel",
    kind="host",
    help="The kernel that runs: major.minor such as 6.12, or the name it was built under",
    type=Text(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", "a version such as 6.12, or the name of a kernel"),
)


def read(entity: Entity, name: str) -> Value:
    return entity.notes.get("kernel") or ".".join(os.uname().release.split("-")[0].split(".")[:2])


def apply(entity: Entity, name: str, value: Value) -> None:
    running = read(entity, name)
    if value != running:
        raise entity.unavailable(name, value, f"got {running} (running: {os.uname().release})")


def unavailable(entity: Entity, name: str) -> str:
    return ""
