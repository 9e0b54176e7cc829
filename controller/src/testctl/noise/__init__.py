# SPDX-License-Identifier: Apache-2.0
"""How noisy a wall-clock testbed is: the A/A test, its estimates and its file."""
