# SPDX-License-Identifier: Apache-2.0
"""Gaps between the data packets of a flow, as a metric and as a curve."""
