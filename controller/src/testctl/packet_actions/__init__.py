# SPDX-License-Identifier: Apache-2.0
"""Packet actions (the parameter `fate`): compares the requested actions with the switches' telemetry."""

from testctl.packet_actions.check import check_fates
from testctl.packet_actions.findings import RuleFinding, requested_fates

__all__ = ["RuleFinding", "check_fates", "requested_fates"]
