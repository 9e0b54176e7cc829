# SPDX-License-Identifier: Apache-2.0
"""What all tests share: who may run what, and how a script is run inside the lab."""

from __future__ import annotations

import ast
import gc
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from testctl.lab.cpu_pinning import own_processor

pytest_plugins = ["tests.leftovers"]

ROOT = Path(__file__).parent
MACHINE, LAB, NOTHING = range(3)
LONGEST = [
    "plugins/rack/tests/machines/test_rack_of_machines.py",
    "agents/tests/switch/test_aqm.py",
    "tests/test_one_line.py",
    "tests/serve/test_browser.py",
    "tests/test_run.py",
    "tests/test_lab_exec.py",
    "tests/serve/test_accessibility.py",
    "tests/test_nightly.py",
    "controller/tests/shrink/test_lab.py",
    "tests/test_docs.py",
    "tests/test_compare.py",
    "tests/test_installed.py",
    "tests/serve/test_lists.py",
    "tests/test_fates.py",
    "tests/serve/test_drawing.py",
    "tests/serve/test_shown.py",
    "tests/test_cluster.py",
    "tests/test_kernel_faults.py",
    "tests/test_gdb.py",
    "controller/tests/lab/test_killed.py",
    "tests/test_lab_network.py",
    "tests/test_action.py",
]
"""Files of 13 to 160 s of processor time, longest first: the last one begun would run alone at the end."""

LATE = pytest.mark.flaky(reruns=1, only_rerun=["TimeoutExpired", "TimeoutError"])

# The same examples each time; `HYPOTHESIS_PROFILE=explore pytest …` looks for new ones.  A busy machine is no failure.
settings.register_profile("seeded", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "seeded"))

# Commands print the same in every place.
os.environ.pop("GITHUB_ACTIONS", None)

# What is imported and collected stays to the end: looking through it for garbage took a fifth of the collection, and
# of many tests.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on garbage is collected, of what tests make."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Root tests are skipped, with the reason, for those who aren't root; several processes begin with the longest.

    A test that ran into a timeout runs once more, and is listed as RERUN; any other failure is one.
    """
    for item in items:
        root = item.get_closest_marker("root")
        if os.geteuid() != 0 and root:
            item.add_marker(pytest.mark.skip(reason="needs root: make namespaces and devices"))
        if not item.get_closest_marker("flaky"):
            item.add_marker(LATE)
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: _order(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Among several processes what needs the machine itself goes first on a processor: it is the longest way, and its
    time is the wall clock's."""
    if "PYTEST_XDIST_WORKER" in os.environ and os.geteuid() == 0:
        with suppress(PermissionError):  # a container's root may not
            os.setpriority(os.PRIO_PROCESS, 0, -10 if _needs(item.nodeid) == MACHINE else 0)
    return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile`: a file's tests run in one process, and all that need the machine itself one after another.
    (xdist's own groups do nothing with pytest 9.)"""
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "the machine" if _needs(nodeid) == MACHINE else nodeid.partition("::")[0]

    return Files(config, log) if config.getoption("dist") == "loadfile" else None


def _order(nodeid: str) -> tuple[int, int]:
    """What needs the machine itself, which takes one process longest; then the longest files; then the lab's others."""
    needs, file = _needs(nodeid), nodeid.partition("::")[0]
    return (needs, 0) if needs == MACHINE or file not in LONGEST else (MACHINE, 1 + LONGEST.index(file))


def _needs(nodeid: str) -> int:
    """The machine itself, the lab, or neither, by the marks in a test's file."""
    file, _, rest = nodeid.partition("::")
    lab, alone = _marks(file)
    name = rest.partition("[")[0]
    return MACHINE if not alone.isdisjoint({"", name}) else LAB if lab else NOTHING


@cache
def _marks(file: str) -> tuple[bool, frozenset[str]]:
    """Whether a file has tests of the lab, and those that need root and are not `beside`; "": all of them."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lab = "mark.lab" in text
    if "mark.root" not in text:
        return lab, frozenset()
    names, tests = {}, {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            names[ast.unparse(node.targets[0])] = ast.unparse(node.value)
        elif isinstance(node, ast.FunctionDef):
            tests[node.name] = [ast.unparse(word) for word in node.decorator_list]
    tests[""] = [names.get("pytestmark", "")]
    alone = re.compile(r"pytest\.mark\.root\b(?!\(beside=True)")
    return lab, frozenset(
        name for name, words in tests.items() if any(alone.search(names.get(word, word)) for word in words)
    )


KERNELS = os.environ.get("TESTCTL_TEST_KERNELS", "6.12,6.1").split(",")
"""The kernels that tests of the lab run on; others than these two only if the environment names them."""


@pytest.fixture(scope="session", params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Path:
    """The lab's kernel binary, each that the project builds in turn."""
    from testctl.testbeds.lab import built

    found = built(request.param)
    if found is None:
        pytest.fail(f"kernel {request.param} is not built: tools/setup {request.param}")
    return found.binary


@pytest.fixture(scope="session")
def in_namespace() -> Callable[..., str]:
    """Run a Python script in network and mount namespaces that go with it (root); returns what it printed."""

    def run(script: Path, *words: str, timeout_s: float = 300.0) -> str:
        argv = ["unshare", "--net", "--mount", sys.executable, str(script), *words]
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, env=env, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def in_lab(tmp_path: Path, kernel: Path) -> Callable[..., str]:
    """Run a Python script as the only program of a lab; returns what it printed.

    The script starts with /proc, /sys, /run and /run/bpf mounted, in a network namespace that
    is the first one, and finds `environment` in os.environ.  A non-zero end or an exception
    fails the test with the lab's words.
    """

    def run(script: str, timeout_s: float = 300.0, **environment: str) -> str:
        body = tmp_path / "script.py"
        body.write_text(textwrap.dedent(script), encoding="utf-8")
        out = tmp_path / "out.txt"
        init = tmp_path / "init"
        init.write_text(
            "#!/bin/sh\nmount -t proc proc /proc\nmount -t sysfs sys /sys\nmount -t tmpfs run /run\n"
            "mkdir /run/bpf; mount -t bpf bpf /run/bpf\n"
            f"export PATH=/usr/sbin:/usr/bin:/sbin:/bin TESTCTL_ROOT={ROOT}\n"
            + "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
            + f"{sys.executable} {body} > {out} 2>&1\necho exit $? >> {out}\n"
            f"sync\nexec {sys.executable} -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'\n",
            encoding="utf-8",
        )
        init.chmod(0o755)
        argv = [str(kernel), "mem=768M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", f"init={init}",
                "con0=fd:0,fd:1", "con=null", "quiet", "panic=-1", f"uml_dir={tmp_path}", "time-travel=inf-cpu",
                "time-travel-start=1700000000000000000"]  # fmt: skip
        env = {"TMPDIR": str(tmp_path), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        with own_processor() as cpu:
            done = subprocess.run(
                [*([] if cpu is None else ["taskset", "--cpu-list", str(cpu)]), *argv],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, env=env, check=False,
            )  # fmt: skip
        said = out.read_text(encoding="utf-8") if out.exists() else ""
        assert said.endswith("exit 0\n"), f"{said}\n{done.stdout}{done.stderr}"
        return said.removesuffix("exit 0\n")

    return run
