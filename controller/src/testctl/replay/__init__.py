# SPDX-License-Identifier: Apache-2.0
"""A point of a finished run once more: proven to be the same, with more instruments attached."""
