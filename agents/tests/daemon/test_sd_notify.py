# SPDX-License-Identifier: Apache-2.0
"""A message that the service manager can't get is no reason to end."""

from __future__ import annotations

import errno
import os
import socket

import pytest
from testctl_agent.daemon.sd_notify import notify


def test_without_a_descriptor_left_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none_left(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setenv("NOTIFY_SOCKET", "@testctl-none")
    monkeypatch.setattr(socket, "socket", none_left)
    notify("WATCHDOG=1")
    assert capsys.readouterr().err == "NOTIFY_SOCKET @testctl-none: Too many open files\n"
