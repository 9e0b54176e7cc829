# SPDX-License-Identifier: Apache-2.0
"""The congestion control of a host: the default of its namespace, so that receivers have it too."""

from __future__ import annotations

from pathlib import Path

from testctl_agent.params.entity import Entity
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Text, Value

SPEC = ParamSpec(
    name="cc",
    kind="host",
    help="Congestion control of every TCP connection of the host",
    type=Text(r"[a-z][a-z0-9_]{0,15}", "the name of a congestion control, such as cubic"),
)


def _file(entity: Entity, what: str) -> Path:
    return entity.proc / "sys/net/ipv4" / f"tcp_{what}congestion_control"


def read(entity: Entity, name: str) -> Value:
    return _file(entity, "").read_text().strip()


def apply(entity: Entity, name: str, value: Value) -> None:
    available = _file(entity, "available_").read_text().split()
    if value not in available:
        raise entity.refuse(name, value, f"this kernel has {', '.join(sorted(available))}")
    try:
        _file(entity, "").write_text(f"{value}\n")
    except PermissionError as error:
        hint = "not allowed in this namespace: add it to net.ipv4.tcp_allowed_congestion_control of the first one"
        raise entity.refuse(name, value, hint) from error
    except OSError as error:
        raise entity.refuse(name, value, error.strerror) from error


def needs(entity: Entity, name: str) -> str:
    return "" if _file(entity, "available_").exists() else f"{_file(entity, 'available_')} is not there"
