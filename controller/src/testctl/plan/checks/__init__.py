# SPDX-License-Identifier: Apache-2.0
"""Checks of a whole plan."""
