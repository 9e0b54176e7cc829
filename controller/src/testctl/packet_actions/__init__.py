# SPDX-License-Identifier: Apache-2.0
"""Packet actions (the parameter `fate`): compares the requested actions with the switches' telemetry."""

from testctl.packet_actions.check import check_fates
from testctl.packet_actions.findings import RuleFinding, asked_of

__all__ = ["RuleFinding", "asked_of", "check_fates"]
