# SPDX-License-Identifier: Apache-2.0
"""Kernel interfaces of network devices: netlink, ethtool, queueing disciplines."""
