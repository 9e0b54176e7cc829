# SPDX-License-Identifier: Apache-2.0
"""The walk over captures, in C."""
