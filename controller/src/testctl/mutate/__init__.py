# SPDX-License-Identifier: Apache-2.0
"""Seeded faults in the kernel's C: how many of them a plan's expectations and the rules of TCP detect."""
