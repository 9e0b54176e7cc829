# SPDX-License-Identifier: Apache-2.0
"""A point for other people's viewers (docs/exports.md)."""

from testctl.exports.perfetto import write_perfetto
from testctl.exports.qlog import write_qlog

__all__ = ["write_perfetto", "write_qlog"]
