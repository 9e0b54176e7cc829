# SPDX-License-Identifier: Apache-2.0
"""An upload that is killed at its 200th line: killed_upload.py RUN URL SPOOL."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from testctl.results import load_run
from testctl_agent.spec.units import Bytes, Duration
from testctl_influx.credentials import Credentials
from testctl_influx.rows import summary_lines
from testctl_influx.send import Patience
from testctl_influx.series import series_lines
from testctl_influx.target import parse_target
from testctl_influx.upload import UploadOptions, upload


def killed(run: Path) -> Iterator[str]:
    found = load_run(run)
    lines = [*summary_lines(found), *series_lines(found, Duration.parse("10ms"))]
    for count, one in enumerate(lines):
        if count == 200:
            os.kill(os.getpid(), signal.SIGKILL)
        yield one


if __name__ == "__main__":
    patience = Patience(1, 0.01, random.Random(1))
    options = UploadOptions(Path(sys.argv[3]), Bytes.parse("10MB"), patience, most_lines=50)
    upload(killed(Path(sys.argv[1])), parse_target(sys.argv[2]), Credentials(), options)
