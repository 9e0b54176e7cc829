# SPDX-License-Identifier: Apache-2.0
"""Who writes to InfluxDB: from a file that only its owner reads, or from the environment; never printed."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from testctl_agent.spec.errors import PlanError

FILE = "TESTCTL_INFLUX_CREDENTIALS"
VARIABLES = {"token": "TESTCTL_INFLUX_TOKEN", "user": "TESTCTL_INFLUX_USER", "password": "TESTCTL_INFLUX_PASSWORD"}


@dataclass(frozen=True)
class Credentials:
    """A token (2 and 3), or a user and password (1); all "" is nobody in particular."""

    token: str = field(default="", repr=False)
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def headers(self, api: str) -> dict[str, str]:
        """The header that says so to an API; of an unknown one ("") that of 3, the only one that asks before /ping."""
        if self.token:
            return {"Authorization": f"{'Token' if api == '2' else 'Bearer'} {self.token}"}
        if self.user:
            pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}


def find_credentials(file: Path | None, environ: Mapping[str, str]) -> Credentials:
    """Those of a file (given, or named by FILE), else of VARIABLES, else none.  Raises PlanError."""
    if file is None and environ.get(FILE):
        file = Path(environ[FILE])
    if file is not None:
        return read_credentials(file)
    return _checked("the environment", {name: environ.get(variable, "") for name, variable in VARIABLES.items()})


def read_credentials(file: Path) -> Credentials:
    """A file of YAML with `token`, or `user` and `password`, of mode 0600.  Raises PlanError."""
    try:
        with file.open(encoding="utf-8") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            if mode != 0o600:
                raise PlanError(f"{file}: want credentials that only their owner can read, mode 0600; got {mode:04o}")
            given = yaml.safe_load(opened)
    except OSError as error:
        raise PlanError(f"{file}: can't read the credentials: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError):
        # The parser's words would quote the file.
        raise PlanError(f"{file}: want YAML with token, or user and password; it can't be parsed") from None
    if not isinstance(given, dict) or not set(given) <= set(VARIABLES):
        raise PlanError(f"{file}: want YAML with token, or user and password, and nothing else")
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, str):
            raise PlanError(f"{file}: {name}: want text, in quotes; got what YAML takes for something else")
    return _checked(str(file), given)


def _checked(where: str, given: Mapping[str, str]) -> Credentials:
    made = Credentials(**given)
    if made.token and (made.user or made.password):
        raise PlanError(f"{where}: want a token, or a user and a password; got both")
    if made.password and not made.user:
        raise PlanError(f"{where}: want a user with the password; got none")
    if any(not value.isprintable() for value in given.values()):
        raise PlanError(f"{where}: want a token, user and password without control characters")
    if not made.token.isascii():
        raise PlanError(f"{where}: want a token in ASCII; got other characters")
    return made
