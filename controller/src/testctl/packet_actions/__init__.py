# SPDX-License-Identifier: Apache-2.0
"""Fates: what was asked of the switches, held against what their telemetry says happened."""

from testctl.packet_actions.check import check_fates
from testctl.packet_actions.findings import Finding, asked_of

__all__ = ["Finding", "asked_of", "check_fates"]
