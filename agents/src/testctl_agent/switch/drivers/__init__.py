# SPDX-License-Identifier: Apache-2.0
"""Control-plane drivers: how table entries reach a switch."""
