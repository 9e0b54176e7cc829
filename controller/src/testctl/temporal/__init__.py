# SPDX-License-Identifier: Apache-2.0
"""Expectations over the trace: signals and events of a connection from records, and the evaluation over time."""

from testctl.temporal.answers import answers_of

__all__ = ["answers_of"]
