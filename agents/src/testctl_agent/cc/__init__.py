# SPDX-License-Identifier: Apache-2.0
"""Congestion controls of lab/cc outside the lab's kernel: compiled, registered as BPF, called by tests."""
