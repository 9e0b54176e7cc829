# SPDX-License-Identifier: Apache-2.0
"""The MTU of a host's devices."""

from __future__ import annotations

from testctl_agent.params.link_mtu import HELP, TYPE, apply, lasting, read, unavailable
from testctl_agent.spec.param import ParamSpec

__all__ = ["SPEC", "apply", "lasting", "read", "unavailable"]

SPEC = ParamSpec(name="mtu", kind="host", help=HELP, type=TYPE, scope="path")
