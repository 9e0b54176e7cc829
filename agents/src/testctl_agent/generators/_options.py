# SPDX-License-Identifier: Apache-2.0
"""Common functions of the generators for the options of a flow."""

from __future__ import annotations

from collections.abc import Mapping

from testctl_agent.params import registry
from testctl_agent.params.flow.traffic import OTHERWISE, ends_by_itself
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


def duration_ns(options: Mapping[str, Value]) -> int:
    """How long the flow may send; 0: until its bytes, or its schedule, are done."""
    start_ns = int(options.get("start_ns", 0))
    if end := int(options.get("end_ns") or 0):
        return end - start_ns
    if options.get("duration"):
        return int(options["duration"])
    return 0 if ends_by_itself(options) else int(OTHERWISE)


def end_ns(options: Mapping[str, Value]) -> int:
    """The absolute time at which the sender stops; 0: when all is sent."""
    length_ns = duration_ns(options)
    return int(options.get("start_ns", 0)) + length_ns if length_ns else 0
