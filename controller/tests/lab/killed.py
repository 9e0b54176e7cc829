# SPDX-License-Identifier: Apache-2.0
"""A run whose points hold a lab's directory and a program for as long as they are let; the test ends it.

python -m controller.tests.lab.killed run RESULTS         a run of six points on two workers
python -m controller.tests.lab.killed draw RUN            the report of a run
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from testctl.cli.interrupt import INTERRUPTED, interruptible
from testctl.execution.options import Options
from testctl.execution.pool import LocalPool
from testctl.execution.run import run_plan
from testctl.plan import Point, load_plan
from testctl.report import Progress, write_report
from testctl.system import temporary
from testctl.system.process_groups import end, starting
from testctl.system.subprocesses import start

PLAN = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[hosts, cc, [cubic, reno]]]\nrepeat: 3\n"


class Sleeping:
    """As the lab does it: a directory of its own, and a session of its own that dies with its parent process."""

    def code_key(self, point: Point) -> str:
        return "sleeping"

    def run(self, point: Point, workdir: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        with temporary.temporary(temporary.LABS) as home:
            (workdir / "raw").write_text("raw")
            with starting() as sessions:
                argv = ["setpriv", "--pdeathsig", "KILL", "sleep", "600"]
                process = start(argv, log=home / "log", env={"PATH": "/usr/bin:/bin", "KILLED": str(home.parent)})
                sessions.add(process.pid)
            os.write(1, b"begun\n")  # at once: two processes write
            try:
                time.sleep(0.5)
            finally:
                end(process)
        return point.to_json(), {"skip": "slept"}


def main() -> None:
    what, where = sys.argv[1], Path(sys.argv[2])
    with interruptible():
        print("ready", flush=True)
        try:
            if what == "run":
                temporary.remove_temporary()
                run_plan(
                    load_plan(PLAN), Sleeping(), Options(where), Progress(6, Console(quiet=True)), pool=LocalPool(2)
                )
            else:
                write_report(where, jobs=2)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
