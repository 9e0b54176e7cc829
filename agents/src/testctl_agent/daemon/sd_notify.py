# SPDX-License-Identifier: Apache-2.0
"""Notifies the service manager that started the agent, if any (sd_notify(3))."""

from __future__ import annotations

import os
import socket
import sys
import time


def notify(text: str) -> None:
    """Send it; never waits."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as sock:
            sock.sendto(text.encode(), f"\0{address[1:]}" if address.startswith("@") else address)
    except OSError as error:
        print(f"NOTIFY_SOCKET {address}: {error.strerror}", file=sys.stderr)


class Watchdog:
    """Sends watchdog messages for a thread, if the manager requests them (WatchdogSec of the unit)."""

    def __init__(self) -> None:
        wanted, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
        requested = wanted.isdecimal() and pid in ("", str(os.getpid()))
        self._every_s = int(wanted) / 4e6 if requested else None

    def turn(self, wait_s: float | None) -> float | None:
        """Say it; returns how long the thread may wait until it says it again, at most `wait_s` (None: for ever)."""
        if self._every_s is None:
            return wait_s
        notify("WATCHDOG=1")
        return self._every_s if wait_s is None else min(wait_s, self._every_s)

    def run(self) -> None:
        """For a thread that does nothing else; ends at once where nobody wants to hear it."""
        while (wait_s := self.turn(None)) is not None:
            time.sleep(wait_s)
