# SPDX-License-Identifier: Apache-2.0
"""BMv2 as a switch's back end: `bmv2` in plans and inventories.

The agent finds it as an entry point (testctl_agent/system/entry_points.py).
"""
