# SPDX-License-Identifier: Apache-2.0
"""What drives equipment that this project has never met: Tofino switches and TRex servers.

The agent finds both as entry points (testctl_agent/system/entry_points.py).
"""
