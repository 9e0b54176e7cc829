# SPDX-License-Identifier: Apache-2.0
"""An upload that is killed at its 200th line: RUN URL SPOOL."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from testctl.results import load_run
from testctl_influx.credentials import Credentials
from testctl_influx.target import parse_target
from testctl_influx.upload import upload

from plugins.influx.tests.compared import lines_of, options


def killed(run: Path) -> Iterator[str]:
    for count, one in enumerate(lines_of(load_run(run))):
        if count == 200:
            os.kill(os.getpid(), signal.SIGKILL)
        yield one


if __name__ == "__main__":
    run, url, spool = sys.argv[1:]
    upload(killed(Path(run)), parse_target(url), Credentials(), options(Path(spool), most_lines=50))
