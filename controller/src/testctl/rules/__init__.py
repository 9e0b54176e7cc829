# SPDX-License-Identifier: Apache-2.0
"""What every TCP must do, packet by packet: one file a rule, judged over the records of a point."""
