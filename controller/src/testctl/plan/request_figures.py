# SPDX-License-Identifier: Apache-2.0
"""The kinds of figures that show requests."""

SLOWDOWN, FCT = "slowdown", "fct"
REQUEST_KINDS = (SLOWDOWN, FCT)
