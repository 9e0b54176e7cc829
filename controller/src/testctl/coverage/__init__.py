# SPDX-License-Identifier: Apache-2.0
"""Which lines, branches and functions of the kernel each point of a run executed."""

from __future__ import annotations

from testctl.coverage.table import Coverage, SourceFile, coverage_of

__all__ = ["Coverage", "SourceFile", "coverage_of"]
