# SPDX-License-Identifier: Apache-2.0
"""Packages of other distributions that provide generators, back ends and parameters: part of an agent's version."""

from __future__ import annotations

from collections.abc import Iterable

from testctl_agent.params import installed, registry
from testctl_agent.params.flow.command import GENERATOR
from testctl_agent.params.words import Word


def generator() -> Word:
    """The type of a flow's `generator`."""
    return _type("flow", "generator")


def of_a_rack() -> Word:
    """As generator(), without what an agent on a rack never runs."""
    word = generator()
    return type(word)(tuple(name for name in word.values if name != GENERATOR))


def backend() -> Word:
    """The type of a switch's `backend`."""
    return _type("switch", "backend")


def packages(
    generators: Iterable[str], switch_backend: str = "", parameters: Iterable[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """The packages of other distributions that provide these, sorted.  Raises TestbedError.

    parameters: (kind, name)
    """
    modules = generator().packages(generators) | backend().packages([switch_backend] if switch_backend else [])
    modules |= {installed.package(kind, name) for kind, name in parameters if not registry.is_own(kind, name)}
    return tuple(sorted(modules))


def _type(kind: str, name: str) -> Word:
    kind_of_value = registry.specs()[kind][name].type
    assert isinstance(kind_of_value, Word)
    return kind_of_value
