# SPDX-License-Identifier: Apache-2.0
"""Reduces a failing point to the smallest set of tuples that still fails, and the ranges of their values."""
