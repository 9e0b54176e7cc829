# SPDX-License-Identifier: Apache-2.0
"""The time that figures of a point show, in the report and in the served page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testctl_agent.params.flow.traffic import OTHERWISE, ends_by_itself

_A_LITTLE = 1.02
"""What a point may take beyond its duration before the axis follows: the last packets under way."""


def shown_ns(asked: Mapping[str, Any], last_ns: int) -> int:
    """The end of the time axis, which begins at 0.

    asked    point.json
    last_ns  when the last packet was seen

    As long as was asked for; when the flows end with their bytes nobody asked, and it is what happened.
    """
    nominal = _nominal_ns(asked)
    return nominal if nominal and last_ns <= nominal * _A_LITTLE else last_ns + 1


def _nominal_ns(asked: Mapping[str, Any]) -> int:
    """How long a point should take by what was asked for; 0 where no flow has a duration.

    "duration_ns" of a point is an estimate where some flow ends by itself.
    """
    options = [flow.get("options", {}) for flow in asked.get("flows", [])]
    lasting = [one for one in options if not ends_by_itself(one)]
    if len(lasting) == len(options):
        return int(asked.get("duration_ns") or 0)
    return max((int(one.get("start") or 0) + int(one.get("duration") or OTHERWISE) for one in lasting), default=0)
