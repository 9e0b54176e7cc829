# SPDX-License-Identifier: Apache-2.0
"""Whether a switch records every packet."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

BACKENDS = ("ebpf",)
"""The back ends that record every packet."""

SPEC = ParamSpec(
    name="telemetry",
    kind="switch",
    role="collector",
    help="on: record each packet's times, queue depth and fate at the switch (a back end with a program: ebpf)",
    type=Switch(),
    default=True,
)
