# SPDX-License-Identifier: Apache-2.0
"""Worker processes do not run the program that starts them, and are forks of it only where all of it survives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, threading
from testctl.cli.main import main
from testctl.system import temporary
from testctl.system.worker_pool import workers
print("once")
end = threading.Event()
if {thread}:
    threading.Thread(target=end.wait, daemon=True).start()
with temporary.temporary("testctl-"), workers(2) as pool:
    assert pool.submit(os.getppid).result() == os.getpid()
    modules = pool.submit(eval, "__import__('sys').modules.keys() & {{'typer', 'testctl.cli.main'}}").result()
    print(sorted(modules))
    print(pool.submit(eval, "__import__('gc').get_threshold()[0]").result())
    of = "__import__('testctl.system.temporary', fromlist='_')"
    print(pool.submit(eval, f"{{of}}._mine, {{of}}._locks").result())
end.set()
"""


@pytest.mark.parametrize(("thread", "modules"), [(False, ["testctl.cli.main", "typer"]), (True, [])])
def test_a_worker_does_not_run_the_program_and_has_its_modules_where_that_is_safe(
    tmp_path: Path, thread: bool, modules: list[str]
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(thread=thread), encoding="utf-8")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["once", str(modules), "50000", "(set(), {})"]


def test_nothing_is_imported_from_the_working_directory(tmp_path: Path) -> None:
    """multiprocessing starts its processes with `python -c`, which looks there first."""
    program, where = tmp_path / "program.py", tmp_path / "where"
    program.write_text(
        "import os\nfrom testctl.system.worker_pool import workers\n"
        "if __name__ == '__main__':\n    with workers(1) as pool:\n"
        "        print(pool.submit(os.getenv, 'PYTHONSAFEPATH', 'free').result(), os.getenv('PYTHONSAFEPATH'))\n"
    )
    where.mkdir()
    for name in ("pickle", "signal", "re"):
        (where / f"{name}.py").write_text("open('owned', 'w')\nraise SystemExit(3)\n")
    ran = subprocess.run([sys.executable, program], cwd=where, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.returncode) == ("free 1\n", 0), ran.stderr
    assert not (where / "owned").exists()
