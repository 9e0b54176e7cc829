# SPDX-License-Identifier: Apache-2.0
"""Runs a plan: points in workers, their assessment, resumption, the run's directory."""
