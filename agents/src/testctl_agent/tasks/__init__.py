# SPDX-License-Identifier: Apache-2.0
"""Generators and collectors: the tasks of an agent during a test."""
