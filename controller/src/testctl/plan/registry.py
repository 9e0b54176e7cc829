# SPDX-License-Identifier: Apache-2.0
"""What the loader needs to know of parameters and metrics, however they are found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Quantity

KINDS = ("host", "switch", "port", "flow")
_SHORT_SYSCTL = re.compile(r"(tcp|ip|udp|icmp)_[a-z0-9_]+")


class Registry(Protocol):
    """The parameters there are; the module testctl_agent.params.registry is one."""

    def specs(self) -> Mapping[str, Mapping[str, ParamSpec]]:
        """Kind -> name -> spec."""

    def find(self, kind: str, name: str) -> ParamSpec | None:
        """The parameter that this name means for entities of that kind; families are matched by pattern."""


class MetricInfo(Protocol):
    """What is needed of a metric: its unit ("bit/s", "ns", "" for a ratio, …), if it is text, and when it is null."""

    @property
    def unit(self) -> str: ...

    @property
    def text(self) -> bool: ...

    @property
    def null(self) -> str: ...


def default_registry() -> Registry:
    """The parameter files of the agents."""
    from testctl_agent.params import registry

    return registry


class Parameters:
    """A registry, asked once for each word."""

    def __init__(self, registry: Registry) -> None:
        self.specs = registry.specs()
        self._registry = registry
        self._found: dict[tuple[str, str], tuple[str, ParamSpec] | None] = {}

    def find(self, kind: str, word: str) -> tuple[str, ParamSpec] | None:
        """The full name and the spec of what a plan's word means for this kind, if it has it.

        A short name of a sysctl is one of net.ipv4: tcp_ecn is net.ipv4.tcp_ecn.
        """
        if (kind, word) not in self._found:
            spec = self._registry.find(kind, word)
            short = word not in self.specs.get(kind, {}) and _SHORT_SYSCTL.fullmatch(word)
            self._found[kind, word] = (f"net.ipv4.{word}" if short else word, spec) if spec else None
        return self._found[kind, word]

    def like_sysctl(self, word: str, hint: str) -> bool:
        """Whether a word begins as the sysctls of net.ipv4 do, and what is suggested for it is none of them."""
        short = [name for name in self.words("host") if name not in self.specs["host"]]
        return bool(_SHORT_SYSCTL.fullmatch(word)) and not any(f" {name}?" in hint for name in short)

    def words(self, kind: str) -> list[str]:
        """The names there are for a kind, with those that a family's pattern spells out."""
        texts: list[str] = []
        for name, spec in self.specs.get(kind, {}).items():
            if spec.internal:
                continue
            texts += [w for w in spec.pattern.split("|") if re.fullmatch(r"[a-z0-9_]+", w)] if spec.pattern else [name]
        return texts


def plain(value: Value) -> Value:
    """A value as JSON has it: a quantity as an integer in its base unit."""
    return int(value) if isinstance(value, Quantity) else value
