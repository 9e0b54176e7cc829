# SPDX-License-Identifier: Apache-2.0
"""What controllers and agents say to each other: agent.proto, and the name of what goes beside a call."""

LEASE_KEY = "testctl-lease"
"""The metadata of a call under a lease: its token."""
