# SPDX-License-Identifier: Apache-2.0
"""From packets to a plan: what was seen becomes tuples, the plan runs, and its packets are compared with those seen."""
