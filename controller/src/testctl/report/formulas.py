# SPDX-License-Identifier: Apache-2.0
"""What a formula of a plan was at a point."""

from __future__ import annotations

from collections.abc import Iterator

from testctl_agent.params import registry
from testctl_agent.spec.types import shown

from testctl.plan.formula import is_meant
from testctl.plan.numbers import NUMBER_TYPES, value_shown
from testctl.results import RunPoint


def with_value(point: RunPoint, entity: str, param: str, value: object) -> str:
    """A tuple's value as written; of a formula also what was set: "0.5 bdp (62.5kB)"."""
    text = shown(value)
    if not is_meant(text):
        return text
    values = dict.fromkeys(_set(point, entity, param))
    return f"{text} ({', '.join(values)})" if values else text


def _set(point: RunPoint, entity: str, param: str) -> Iterator[str]:
    """The values of the entity, else of a switch's ports, else of all that have the parameter."""
    flows = {flow["name"]: flow.get("options", {}) for flow in point.point.get("flows", ())}
    having = {of: values for of, values in {**point.point.get("settings", {}), **flows}.items() if param in values}
    ports = [of for of in having if of.startswith(f"{entity}:")]
    for of in [entity] if entity in having else ports or having:
        kinds = ["flow"] if of in flows else ["port"] if ":" in of else ["host", "switch"]
        spec = next((spec for kind in kinds if (spec := registry.find(kind, param))), None)
        if spec and isinstance(spec.type, NUMBER_TYPES):
            yield value_shown(spec.type, having[of][param])
