# SPDX-License-Identifier: Apache-2.0
"""The file that a lab's code comes from: all of it, of this tree and this Python, and nothing that is slow to load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testctl.lab.boot_code import BootCode, _key, as_files, boot_code
from testctl.system import checkout
from testctl.testbeds.lab import boot_modules

SLOW = {"grpc", "google", "asyncio", "ssl", "importlib.metadata", "testctl_agent.daemon.agent_pb2"}
PROGRAM = """
import sys
sys.path[:0] = [{program!r}]
sys.argv = ["init"]
import importlib.util
spec = importlib.util.spec_from_file_location("init", {program!r})
init = importlib.util.module_from_spec(spec)
spec.loader.exec_module(init)
code = init.BootCode({code!r})
sys.meta_path.insert(2, code)
code.bring_methods()
import dataclasses
bring, texts = dataclasses.exec, set()
dataclasses.exec = lambda text, *places: (texts.add(text), bring(text, *places))
import first_process
first_process.load_everything()
print(*sorted(name for name, one in sys.modules.items() if type(getattr(one, "__loader__", 0)) is init.BootCode))
print(*sorted(sys.modules))
print("site" in sys.modules)
print(len(texts), len(texts - code._read("methods of data classes").keys()))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path))
    return tmp_path


def loaded(made: BootCode) -> tuple[set[str], set[str], bool]:
    """(the modules that came from the file, all modules, whether `site` was needed) in an interpreter of its own."""
    program = PROGRAM.format(program=str(Path(made.argv[-1])), code=made.environment["TESTCTL_CODE"])
    done = subprocess.run([*made.argv[:-1], "-c", program], capture_output=True, text=True, check=True, timeout=300)
    own, everything, site, methods = done.stdout.splitlines()
    all_methods, compiled = map(int, methods.split())
    assert (all_methods > 100, compiled) == (True, 0)  # none is compiled anew
    return set(own.split()), set(everything.split()), site == "True"


def test_all_that_an_agent_imports_comes_from_it(cache: Path) -> None:
    own, everything, site = loaded(boot_code("abc", boot_modules()))
    assert {"first_process", "testctl_agent.engine.service", "testctl_agent.collect.capture", "json"} <= own
    assert not {name for name in everything - own if name.startswith("testctl")}
    assert not site
    assert not SLOW & everything


def test_it_is_made_once_for_this_code(cache: Path) -> None:
    first = boot_code("abc", boot_modules())
    file = Path(first.environment["TESTCTL_CODE"])
    made = file.stat().st_ino
    assert boot_code("abc", boot_modules()) == first
    assert file.stat().st_ino == made
    assert boot_code("abd", boot_modules()).environment != first.environment
    moved = {name: Path("/elsewhere") / path.name for name, path in boot_modules().items()}
    assert _key("abc", moved) not in {_key("abc", boot_modules()), _key("abd", boot_modules())}


def test_what_no_run_has_used_for_a_month_is_removed(cache: Path) -> None:
    used, unused = (Path(boot_code(code, boot_modules()).argv[-1]).parent for code in ("used", "unused"))
    for entry in (used, unused):
        os.utime(entry, (0, 0))
    boot_code("used", boot_modules())
    fresh = Path(boot_code("fresh", boot_modules()).argv[-1]).parent
    assert sorted((cache / "boot").iterdir()) == sorted([used, fresh])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_where_nothing_can_be_kept_the_files_are_used(cache: Path) -> None:
    cache.chmod(0o500)
    assert boot_code("abc", boot_modules()) == as_files()


def test_without_it_the_program_is_that_of_the_checkout() -> None:
    assert as_files().argv == (sys.executable, str(checkout.lab() / "boot" / "init.py"))
