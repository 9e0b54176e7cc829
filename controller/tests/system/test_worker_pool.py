# SPDX-License-Identifier: Apache-2.0
"""Worker processes do not run the command line that starts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os
from testctl.system.worker_pool import workers
print("once")
with workers(2) as pool:
    assert pool.submit(os.getppid).result() == os.getpid()
    modules = pool.submit(eval, "__import__('sys').modules.keys() & {'typer', 'testctl.cli.main'}").result()
    print(sorted(modules))
    print(pool.submit(eval, "__import__('gc').get_threshold()[0]").result())
"""


def test_a_worker_does_not_import_the_commands(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(f"from testctl.cli.main import main\n{SCRIPT}", encoding="utf-8")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["once", "[]", "50000"]
