# SPDX-License-Identifier: Apache-2.0
"""Common functions of the generators for the options of a flow."""

from __future__ import annotations

from collections.abc import Mapping

from testctl_agent.params import registry
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value


def defaults() -> dict[str, Value]:
    """The flow parameters that have a default → the default."""
    return {name: spec.default for name, spec in registry.specs()["flow"].items() if spec.default is not None}


def with_defaults(options: Mapping[str, Value]) -> dict[str, Value]:
    return defaults() | dict(options)


def need(options: Mapping[str, Value], name: str, who: str) -> Value:
    """An option that must be there; TestbedError when it is not."""
    if name not in options:
        raise TestbedError(f"{who}: option {name} is missing; got {', '.join(sorted(options)) or 'none'}")
    return options[name]


def asked(options: Mapping[str, Value], name: str) -> bool:
    """Whether an option is given and differs from its default."""
    value = options.get(name)
    return value not in (None, "", "off", "none", "auto", defaults().get(name))
