# SPDX-License-Identifier: Apache-2.0
"""QEMU's monitor: one command, one answer."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import TestbedError

ANSWER_S = 20.0


def ask(path: Path, command: str, **arguments: Any) -> Any:
    """What QEMU returns for a command of its monitor.  Raises TestbedError."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_S)
            connection.connect(str(path))
            with connection.makefile("rw", encoding="utf-8") as file:
                file.readline()  # the greeting
                _said(file, "qmp_capabilities", {})
                return _said(file, command, arguments)
    except (OSError, ValueError) as error:
        raise TestbedError(f"{path}: {command}: QEMU does not answer: {error}") from error


def _said(file: Any, command: str, arguments: dict[str, Any]) -> Any:
    file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    file.flush()
    for line in file:
        answer = json.loads(line)
        if "return" in answer:
            return answer["return"]
        if "error" in answer:
            raise TestbedError(f"{command} {arguments}: QEMU: {answer['error'].get('desc', answer)}")
    raise ValueError("the connection was closed")
