# SPDX-License-Identifier: Apache-2.0
"""Repeats a point of a finished run with more instruments, and verifies that it is identical."""
