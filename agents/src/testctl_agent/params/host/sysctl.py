# SPDX-License-Identifier: Apache-2.0
"""Every sysctl below net.ipv4 and net.core by its name; well-known ones of TCP by the last part alone."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

from testctl_agent.params.entity import Entity
from testctl_agent.params.sysctls import KNOWN, device_of, type_of
from testctl_agent.params.types import Fields
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Choice, Value, ValueType

_IPV4 = "net.ipv4."

SPEC = ParamSpec(
    name="sysctl",
    kind="host",
    help="A sysctl: net.ipv4.NAME or net.core.NAME, or the name alone of a well-known one such as tcp_ecn",
    type=Fields(),
    pattern=r"net\.(?:ipv4|core)(?:\.[a-z0-9_]+)+|" + "|".join(KNOWN),
)


def spec_for(name: str) -> ParamSpec:
    """The spec of one sysctl: its own type where that is known."""
    return replace(SPEC, name=name, type=_type(name), help=f"sysctl {_full(name)}", pattern="")


def _full(name: str) -> str:
    return _IPV4 + name if name in KNOWN else name


def _type(name: str) -> ValueType:
    full = _full(name)
    return type_of(full.removeprefix(_IPV4)) if full.startswith(_IPV4) else SPEC.type


def _file(entity: Entity, name: str) -> Path:
    full = _full(name)
    if not SPEC.matches(full) or full == SPEC.name:
        raise ApplyError(f"{entity.kind} {entity.name}, {name}: want a sysctl below net.ipv4 or net.core")
    return entity.proc / f"sys/{full.replace('.', '/')}"


def read(entity: Entity, name: str) -> Value:
    """The value as the sysctl's type has it; the kernel's text where the type does not parse it."""
    text = " ".join(_file(entity, name).read_text().split())
    try:
        return _type(name).parse(text)
    except ValueError:
        return text


def apply(entity: Entity, name: str, value: Value) -> None:
    try:
        _file(entity, name).write_text(f"{value}\n")
    except OSError as error:
        why = f"{_file(entity, name)}: {error.strerror}"
        if error.errno == errno.EINVAL and isinstance(_type(name), Choice):
            raise entity.unavailable(name, value, f"{why}: this kernel has no such value") from error
        raise entity.refuse(name, value, why) from error


def unavailable(entity: Entity, name: str) -> str:
    path, full = _file(entity, name), _full(name)
    if not path.is_file():
        return f"there is no {full} in this kernel, or only in its first network namespace"
    mode = path.stat().st_mode
    if not mode & 0o200:
        return f"{full} can only be read"
    if not mode & 0o400:
        return f"{full} can only be written: nobody could bring back what it was"
    device = device_of(full.removeprefix(_IPV4))
    if device and device not in entity.devices:
        return f"{full} is of device {device}; want one of {', '.join(entity.devices) or 'none'}"
    return ""
