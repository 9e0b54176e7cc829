# SPDX-License-Identifier: Apache-2.0
"""The commands of a rack."""
