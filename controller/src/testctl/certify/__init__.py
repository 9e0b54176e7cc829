# SPDX-License-Identifier: Apache-2.0
"""A scorecard of a congestion control: what RFC 9743 asks of a new one, as plans."""
