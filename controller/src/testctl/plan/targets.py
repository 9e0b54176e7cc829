# SPDX-License-Identifier: Apache-2.0
"""What an (entity, parameter) pair of a plan stands for: which entities, which parameter of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testctl_agent.spec.param import ParamSpec

from testctl.plan.diagnostics import show, suggest
from testctl.plan.names import Names
from testctl.plan.registry import KINDS, Parameters


@dataclass(frozen=True)
class Aim:
    """One parameter of one entity."""

    entity: str
    kind: str
    param: str
    spec: ParamSpec

    @property
    def key(self) -> tuple[str, str]:
        return self.entity, self.param


def aims_of(names: Names, parameters: Parameters, entity: str, param: str) -> list[Aim]:
    """All that the pair stands for; a port parameter of a switch is one of each of its ports.

    Raises ValueError that says who has no such parameter.
    """
    if not names.kind(entity):
        raise ValueError(names.unknown(entity))
    return [aim for member in names.members(entity) for aim in _of_member(names, parameters, entity, member, param)]


def _of_member(names: Names, parameters: Parameters, entity: str, member: str, param: str) -> Iterator[Aim]:
    kind = names.kind(member)
    found = parameters.find(kind, param)
    if found:
        yield Aim(member, kind, *found)
        return
    of_port = parameters.find("port", param) if kind == "switch" else None
    if of_port is None:
        raise ValueError(_no_parameter(names, parameters, entity, member, param))
    for port in names.topology.ports(member):
        yield Aim(port, "port", *of_port)


def _no_parameter(names: Names, parameters: Parameters, entity: str, member: str, param: str) -> str:
    kind = names.kind(member)
    who = f"{names.kind(entity)} {entity}: "
    if member != entity:
        who += f"its {kind} {member} has "
    known = parameters.words(kind) + (parameters.words("port") if kind == "switch" else [])
    others = [k for k in KINDS if k != kind and parameters.find(k, param)]
    if others:
        return f"{who}no parameter named {show(param)}, which is one of a {' or '.join(others)}"
    return f"{who}no parameter named {show(param)}{suggest(param, known)}"


def rank(names: Names, entity: str, aim: Aim) -> int:
    """How specific a tuple is: 0 by a group, 1 by the switch of a port, 2 by its own name."""
    if names.kind(entity) == "group":
        return 0
    return 2 if entity == aim.entity else 1
