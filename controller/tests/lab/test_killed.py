# SPDX-License-Identifier: Apache-2.0
"""A command that is killed, at whatever moment, leaves no process; its files are gone at the next start."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testctl.results import RunWriter
from testctl.results.work import WORK, begin_work
from testctl.system import temporary, worker_pool

from tests.leftovers import marked

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
LONG_S = 120
SEEDS = int(os.environ.get("TESTCTL_KILLS", "1"))
SHM = Path("/dev/shm")


@pytest.fixture
def where(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "tmp").mkdir()
    yield tmp_path
    for pid in alive(tmp_path):
        os.kill(pid, signal.SIGKILL)


def begin(where: Path, what: str, on: Path) -> subprocess.Popen[str]:
    """The command, ready; whatever it starts has the directory in its environment."""
    env = os.environ | {"TMPDIR": str(where / "tmp"), "KILLED": str(where / "tmp"), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "controller.tests.lab.killed", what, str(on)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env, cwd=ROOT, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def alive(where: Path) -> list[int]:
    """The processes that were started by a command of this test; not those that are only waited for."""
    return marked(f"KILLED={where / 'tmp'}")


def gone(where: Path) -> bool:
    until = time.monotonic() + LONG_S
    while alive(where) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(where)


def labs(where: Path) -> list[Path]:
    return list((where / "tmp").glob(f"{temporary.LABS}*"))


def semaphores(pid: int) -> list[Path]:
    return list(SHM.glob(f"sem.testctl-*-{pid}-*"))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("what", ["run", "draw"])
def test_killed_at_any_moment(where: Path, what: str, seed: int, drawn_run: Path) -> None:
    results = where / "results"
    with begin(where, what, drawn_run if what == "draw" else results) as process:
        time.sleep(random.Random(f"{what} {seed}").uniform(0, 5))
        process.kill()
        process.wait()
        assert gone(where)
    worker_pool.sweep_semaphores()
    assert semaphores(process.pid) == []
    with begin(where, "run", results) as again:
        assert again.stdout is not None
        assert again.stdout.readline() == "begun\n"
        (running,) = results.glob(f"*.in-progress/{WORK}")
        again.send_signal(signal.SIGINT)
        assert again.wait(LONG_S) == 130
    assert gone(where)
    assert labs(where) == []
    assert not running.exists()
    assert semaphores(again.pid) == []


@pytest.fixture(scope="module")
def drawn_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from controller.tests.serve.conftest import make_run

    return make_run(tmp_path_factory.mktemp("drawn"), 1)


def test_what_is_in_use_stays(tmp_path: Path) -> None:
    there = tmp_path / f"{temporary.LABS}1"
    there.mkdir()
    assert temporary.remove_abandoned([there]) == []
    temporary.hold(there)
    assert temporary.remove_abandoned([there]) == []
    temporary.release(there)
    assert temporary.remove_abandoned([there]) == [there]
    assert not there.exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / temporary.HELD).touch()
    link = tmp_path / f"{temporary.LABS}x"
    link.symlink_to(mine)
    assert temporary.remove_abandoned([link]) == []
    assert mine.exists()


def test_a_killed_runs_raw_files_go_and_its_points_stay(tmp_path: Path) -> None:
    empty, some, running = (RunWriter.create_at(tmp_path / name, need=0).path for name in ("empty", "some", "running"))
    for path in (empty, some, running):
        (path / WORK / "raw").mkdir(parents=True)
        temporary.hold(path / WORK)
    (some / "points" / "cafe").mkdir()
    temporary.release(empty / WORK)
    temporary.release(some / WORK)
    new = RunWriter.create_at(tmp_path / "new", need=0).path
    begin_work(new)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{n}.in-progress" for n in ("new", "running", "some")]
    assert not (some / WORK).exists()
    assert (running / WORK / "raw").exists()


KILLED_CHECK = """
import os, sys
from pathlib import Path
from rich.console import Console
from testctl.noise.aa_test import check_of, run_check
from testctl.plan import load_plan
from testctl.report import Progress
from testctl.core.outcome import Outcome
from testctl.testbeds.point_spec import spec_of

class Dies:
    def code_key(self, point): return "dies"
    def run(self, point, workdir):
        (workdir / "raw.bin").write_bytes(bytes(1000))
        os.kill(int(os.environ["CHECK"]), 9)

if __name__ == "__main__":
    os.environ["CHECK"] = str(os.getpid())
    plan = load_plan("topology: pair\\nflows: {bulk: sender -> receiver}\\ntuples: [[hosts, cc, cubic]]\\n")
    run_check(plan, Dies(), check_of(plan, "1", 2), Path(sys.argv[1]), Progress(2, Console(quiet=True)))
"""


def test_a_killed_checks_raw_files_go(tmp_path: Path) -> None:
    """Its process is killed in the middle of a point, from a worker of its own."""
    script = tmp_path / "check.py"
    script.write_text(KILLED_CHECK, encoding="utf-8")
    results = tmp_path / "results"
    done = subprocess.run([sys.executable, str(script), str(results)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (left,) = results.iterdir()
    assert left.name.endswith("-aa")
    begin_work(RunWriter.create_at(results / "new", need=0).path)
    assert [path.name for path in results.iterdir()] == ["new.in-progress"]


def test_a_check_leaves_no_raw_files(tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    script.write_text(
        KILLED_CHECK.replace('os.kill(int(os.environ["CHECK"]), 9)', "return spec_of(point), Outcome(skip='no')")
    )
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "r")], capture_output=True, text=True, check=False
    )
    assert "alone, is skip: no" in done.stderr
    assert list((tmp_path / "r").iterdir()) == []


def test_semaphores_of_the_living_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_threads", lambda: {"one that a fork would lack"})
    with worker_pool.workers(1) as pool:
        assert pool.submit(os.getpid).result() != os.getpid()
        there = semaphores(os.getpid())
        assert there
        worker_pool.sweep_semaphores()
        assert semaphores(os.getpid()) == there


def test_a_worker_whose_parent_is_another_ends_at_once() -> None:
    """As one whose parent died while it was importing."""
    script = "import os; from testctl.system.process_groups import end_on_sigterm; end_on_sigterm(os.getppid() + 1)"
    script += "; print('goes on')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
