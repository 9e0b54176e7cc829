# SPDX-License-Identifier: Apache-2.0
"""The agent as a daemon: gRPC with mutual TLS, leases.  It wants what testctl-agent[daemon] brings."""

LEASE_KEY = "testctl-lease"
"""The metadata of a call under a lease: its token."""
