# SPDX-License-Identifier: Apache-2.0
"""The agent of testctl: it sets, reads back and restores what a TCP test needs."""

__version__ = "0.1.0"
