# SPDX-License-Identifier: Apache-2.0
"""The back end of a switch: a plan asks for it, a testbed starts it, an agent can only confirm it."""

from __future__ import annotations

from testctl_agent.params.entity import Entity
from testctl_agent.params.words import BackendWord
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Value
from testctl_agent.switch.backend import of_plans

SPEC = ParamSpec(
    name="backend",
    kind="switch",
    help="What forwards: the P4 program, in the kernel (ebpf), on bmv2 or tofino; or the kernel with netem",
    type=BackendWord(of_plans()),
    scope="testbed",
)


def read(entity: Entity, name: str) -> Value:
    return entity.backend.name if entity.backend else "none"


def apply(entity: Entity, name: str, value: Value) -> None:
    running = read(entity, name)
    if value != running:
        raise entity.refuse(name, value, f"got {running}")


def unavailable(entity: Entity, name: str) -> str:
    return "" if entity.backend else "its agent was started without a back end"
