# SPDX-License-Identifier: Apache-2.0
"""What all tests share: who may run what, and how a script is run inside the lab."""

from __future__ import annotations

import gc
import os
import random
import shlex
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from testctl.lab.cpu_pinning import own_processor

pytest_plugins = ["tests.leftovers"]

ROOT = Path(__file__).parent
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
    """Tests that need root are skipped, with the reason, for other users.

    A test that ran into a timeout runs once more, and is listed as RERUN; any other failure is one.
    TESTCTL_TESTS_ORDER is a seed of the files' order: where there is no time for all, others get their turn.
    """
    if seed := os.environ.get("TESTCTL_TESTS_ORDER"):
        items.sort(key=lambda item: random.Random(f"{seed} {item.path}").random())
    for item in items:
        if os.geteuid() != 0 and (item.get_closest_marker("root") or item.get_closest_marker("alone")):
            item.add_marker(pytest.mark.skip(reason="needs root: make namespaces and devices"))
        if not item.get_closest_marker("flaky"):
            item.add_marker(LATE)


def pytest_runtest_setup() -> None:
    """No test begins after TESTCTL_TESTS_UNTIL, seconds since 1970."""
    if time.time() > float(os.environ.get("TESTCTL_TESTS_UNTIL", "inf")):
        pytest.skip("there was no time left for it")


KERNELS = os.environ.get("TESTCTL_TEST_KERNELS", "6.12").split(",")
"""The kernels that tests of the lab run on: `make test-all` names 6.1 too."""


@pytest.fixture(scope="session", params=KERNELS)
def release(request: pytest.FixtureRequest) -> str:
    """A kernel of the lab, each that is tested in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def kernel(release: str) -> Path:
    """The binary of a kernel of the lab."""
    from testctl.lab.built import kernel_for

    return kernel_for(release).binary


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
            f"export PATH=/usr/sbin:/usr/bin:/sbin:/bin TESTCTL_ROOT={ROOT} PYTHONPATH={ROOT}\n"
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
