# SPDX-License-Identifier: Apache-2.0
"""The congestion control of a host: the default of its namespace, so that receivers have it too.

One that the kernel lacks is loaded as BPF if there is a program of that name; one that it does not allow in namespaces
is allowed; both as long as some host uses it (testctl_agent/cc/shared.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

from testctl_agent.cc.noted import STATE
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import ProgramError, TestbedError, Unavailable
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Text, Value

SPEC = ParamSpec(
    name="cc",
    kind="host",
    help="Congestion control of every TCP connection of the host.  The lab's kernels have bbr (version 1), bic, cdg, "
    "cubic, dctcp, highspeed, htcp, hybla, illinois, lp, nv, reno, scalable, vegas, veno, westwood, yeah, and the "
    "project's own (docs/congestion-control.md)",
    type=Text(r"[a-z][a-z0-9_]{0,15}", "the name of a congestion control, such as cubic"),
    example="cubic",
)

_SHARED = "testctl_agent.cc.shared"
"""Slow to import; most congestion controls do not need it."""


def _file(entity: Entity, what: str) -> Path:
    return entity.proc / "sys/net/ipv4" / f"tcp_{what}congestion_control"


def read(entity: Entity, name: str) -> Value:
    return _file(entity, "").read_text().strip()


def apply(entity: Entity, name: str, value: Value) -> None:
    wanted = str(value)
    available = _file(entity, "available_").read_text().split()
    if wanted in available and not (STATE / wanted).exists() and _written(entity, name, wanted):
        return _give_back(wanted)

    from testctl_agent.cc import shared

    if wanted not in available and shared.source_of(wanted) is None:
        have = ", ".join(sorted(available))
        raise entity.unavailable(name, value, f"this kernel has {have}, and there is no BPF program of that name")
    try:
        shared.acquire(wanted)
        if not _written(entity, name, wanted):
            shared.allow(wanted)
            if not _written(entity, name, wanted):
                raise entity.refuse(name, value, "not allowed in this namespace")
    except Unavailable as error:
        raise entity.unavailable(name, value, error) from error
    except (ProgramError, TestbedError) as error:
        raise entity.refuse(name, value, error) from error
    _give_back(wanted)


def _written(entity: Entity, name: str, wanted: str) -> bool:
    """Whether the kernel takes it; False if this namespace is not allowed to have it."""
    try:
        _file(entity, "").write_text(f"{wanted}\n")
    except PermissionError:
        return False
    except OSError as error:
        raise entity.refuse(name, wanted, error.strerror) from error
    return True


def _give_back(kept: str) -> None:
    """Release what this process acquired for earlier values; without the import it acquired nothing."""
    if _SHARED not in sys.modules:
        return
    from testctl_agent.cc import shared

    for other in shared.held():
        if other != kept:
            shared.release(other)


def unavailable(entity: Entity, name: str) -> str:
    return "" if _file(entity, "available_").exists() else f"{_file(entity, 'available_')} is not there"
