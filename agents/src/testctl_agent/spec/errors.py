# SPDX-License-Identifier: Apache-2.0
"""The one tree of exceptions: every error says who, wanted, got and where."""

from __future__ import annotations

from testctl_agent.spec.untrusted import words


class TestctlError(Exception):
    """Base of every error that is reported to a user without a traceback.

    Its text may come from an agent, a compiler or a kernel, so terminal controls are removed.
    """

    __test__ = False  # not a test, whatever its name says to pytest
    exit_code = 3

    def __init__(self, *parts: object) -> None:
        super().__init__(*(words(part) if isinstance(part, str) else part for part in parts))


class PlanError(TestctlError):
    """The plan (or the command line) is wrong; nothing was touched."""

    exit_code = 2


class TestbedError(TestctlError):
    """The testbed is broken, or does not support what it declared."""

    __test__ = False


class ApplyError(TestbedError):
    """A parameter could not be set, read back or restored on an entity."""


class Unavailable(ApplyError):
    """A value that this kernel or machine does not support: a point that needs it is skipped here."""


class ProgramError(TestctlError):
    """A P4 program can't be translated or is not what was expected; the text names its file and line."""

    exit_code = 2


class DriverError(TestbedError):
    """A running switch refused a table entry or could not be read."""
