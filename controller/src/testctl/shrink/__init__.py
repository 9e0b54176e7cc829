# SPDX-License-Identifier: Apache-2.0
"""From a failing point to what of it matters: the smallest set of tuples that still fails, and their ranges."""
