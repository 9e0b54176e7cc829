# SPDX-License-Identifier: Apache-2.0
"""How long a flow sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Duration

OTHERWISE = Duration(10 * 10**9)
"""For a flow that has neither bytes nor a schedule nor a duration."""


def ends_by_itself(options: Mapping[str, Any]) -> bool:
    """Whether a flow with these options ends when its bytes or its schedule are done."""
    return bool(options.get("bytes")) or str(options.get("pattern", "")).startswith("schedule")


SPEC = ParamSpec(
    name="duration",
    kind="flow",
    role="flow",
    help=f"How long the flow sends; {OTHERWISE} when neither bytes nor a schedule end it",
    type=Amount(Duration, least=1000, most=10**15),
)
