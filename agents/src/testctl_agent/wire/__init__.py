# SPDX-License-Identifier: Apache-2.0
"""The messages between controllers and agents, on whatever channel."""
