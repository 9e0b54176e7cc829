# SPDX-License-Identifier: Apache-2.0
"""With whom a host of a lab shares a kernel."""

from __future__ import annotations

from testctl_agent.params import partitions

SPEC = partitions.spec("host")
