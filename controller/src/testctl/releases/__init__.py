# SPDX-License-Identifier: Apache-2.0
"""What changed in TCP from one release of the kernel to the next, over the points of plans, by cause."""
