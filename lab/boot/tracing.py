# SPDX-License-Identifier: Apache-2.0
"""Tracepoints of the lab's kernel, of a variant that has them: recorded while the traffic passes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from testctl_agent.system.namespace import mount

FILES = Path("/run/tracing")
BUFFER_KB = 65536


def prepare(events: Sequence[str]) -> str:
    """Choose the events; nothing is recorded yet.  Returns why it can't be done, or ""."""
    try:
        mount("tracefs", str(FILES))
    except OSError:
        return "this kernel has no tracepoints"
    _set("tracing_on", "0")
    _set("trace_clock", "local")  # of this kernel: virtual nanoseconds, and reading it moves nothing
    _set("buffer_size_kb", str(BUFFER_KB))
    for event in events:
        try:
            chosen = os.open(FILES / "set_event", os.O_WRONLY | os.O_APPEND)
            try:
                os.write(chosen, f"{event}\n".encode())
            finally:
                os.close(chosen)
        except OSError:
            groups = sorted(path.name for path in (FILES / "events").iterdir() if path.is_dir())
            return f"trace {event}: this kernel has no such event; its groups are {', '.join(groups)}"
    return ""


def record() -> None:
    _set("tracing_on", "1")


def write(file: Path) -> None:
    """End recording, and write all events as text."""
    _set("tracing_on", "0")
    file.write_bytes((FILES / "trace").read_bytes())


def _set(name: str, value: str) -> None:
    (FILES / name).write_text(value, encoding="ascii")
