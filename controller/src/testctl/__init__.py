# SPDX-License-Identifier: Apache-2.0
"""testctl: a test framework for TCP (see README.md)."""

__version__ = "0.1.0"
