# SPDX-License-Identifier: Apache-2.0
"""The run that boots this machine, in a file next to the journal: its place in the queue outlasts the boot.

Root of the machine looks at the file before it boots another kernel (the controller's boot_once.py): where it is not
there, of another ticket or of an earlier boot, nothing is booted.  So there is one only while no other run can get
the lease.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from testctl_agent.engine.journal import this_boot
from testctl_agent.engine.refusals import Refusal
from testctl_agent.spec.untrusted import loads, misfit
from testctl_agent.system import durable

NAME = "boot.json"
ORDERED_S = 10.0
"""From the end of such a lease to the next one: a reboot that was ordered before happens meanwhile (REBOOT_S there)."""
_SHAPE = {"ticket": str, "holder": str, "limit_s": float, "boot": str}


@dataclass(frozen=True)
class Boot:
    """limit_s: how long the place is kept after the agent's next start; boot: the id of the boot that is to end."""

    ticket: str
    holder: str
    limit_s: float
    boot: str


class Boots:
    """The file; None: this agent's machine is not booted by runs."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.noted: Boot | None = None
        if path is not None:
            with suppress(OSError, ValueError):
                fields = loads(path.read_bytes())
                self.noted = None if misfit(fields, _SHAPE) else Boot(**{name: fields[name] for name in _SHAPE})

    def note(self, ticket: str, holder: str, limit_s: float) -> None:
        """Raises Refusal when it can't be written."""
        if self._path is None:
            raise Refusal("this agent keeps no place during a boot")
        noted = Boot(ticket, holder, limit_s, this_boot())
        try:
            durable.write(self._path, json.dumps(asdict(noted)).encode(), 0o600)
        except OSError as error:
            raise Refusal(f"{self._path}: can't be written: {error.strerror}") from error
        self.noted = noted

    def forget(self) -> bool:
        """Whether there was one."""
        there, self.noted = self.noted is not None, None
        if there and self._path is not None:
            with suppress(FileNotFoundError):
                durable.remove(self._path)
        return there
