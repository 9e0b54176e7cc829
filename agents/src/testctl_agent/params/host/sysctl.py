# SPDX-License-Identifier: Apache-2.0
"""Every sysctl below net.ipv4 and net.core by its name; well-known ones of TCP by the last part alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testctl_agent.params.entity import Entity
from testctl_agent.params.sysctls import KNOWN
from testctl_agent.params.types import Words
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Value, ValueType

_IPV4 = "net.ipv4."

SPEC = ParamSpec(
    name="sysctl",
    kind="host",
    help="A sysctl: net.ipv4.NAME or net.core.NAME, or the name alone of a well-known one such as tcp_ecn",
    type=Words(),
    pattern=r"net\.(?:ipv4|core)(?:\.[a-z0-9_]+)+|" + "|".join(KNOWN),
)


def spec_for(name: str) -> ParamSpec:
    """The spec of one sysctl: its own type where that is known."""
    return replace(SPEC, name=name, type=_type(name), help=f"sysctl {_full(name)}", pattern="")


def _full(name: str) -> str:
    return _IPV4 + name if name in KNOWN else name


def _type(name: str) -> ValueType:
    return KNOWN.get(_full(name).removeprefix(_IPV4), SPEC.type)


def _file(entity: Entity, name: str) -> Path:
    full = _full(name)
    if not SPEC.matches(full) or full == SPEC.name:
        raise ApplyError(f"{entity.kind} {entity.name}, {name}: want a sysctl below net.ipv4 or net.core")
    return entity.proc / f"sys/{full.replace('.', '/')}"


def read(entity: Entity, name: str) -> Value:
    """The value as the sysctl's type has it; the kernel's own words when it holds something else."""
    words = " ".join(_file(entity, name).read_text().split())
    try:
        return _type(name).parse(words)
    except ValueError:
        return words


def apply(entity: Entity, name: str, value: Value) -> None:
    try:
        _file(entity, name).write_text(f"{value}\n")
    except OSError as error:
        raise entity.refuse(name, value, f"{_file(entity, name)}: {error.strerror}") from error


def needs(entity: Entity, name: str) -> str:
    path = _file(entity, name)
    if not path.is_file():
        return f"there is no {_full(name)} in this kernel, or only in its first network namespace"
    return "" if path.stat().st_mode & 0o200 else f"{_full(name)} can only be read"
