# SPDX-License-Identifier: Apache-2.0
"""The dashboards, one file each."""
