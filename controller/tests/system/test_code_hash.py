# SPDX-License-Identifier: Apache-2.0
"""Keys of code cover all the code that runs: what is imported is found, not listed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testctl.execution.assess import analysis_keys
from testctl.system import checkout, code_hash
from testctl.system.code_hash import closure, hash_of, imports, modules_below
from testctl.testbeds.lab import code_files


def loaded_by(program: str) -> set[Path]:
    """The files of this project's modules that a Python program has loaded at its end."""
    listed = (
        "import sys\n"
        "for name, module in sorted(sys.modules.items()):\n"
        "    if name.partition('.')[0] in ('testctl', 'testctl_agent') and getattr(module, '__file__', None):\n"
        "        print(module.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{listed}"], capture_output=True, text=True, timeout=120, check=True
    )
    return {Path(line).resolve() for line in done.stdout.splitlines()}


def test_the_key_of_a_lab_covers_all_that_its_first_process_imports() -> None:
    boot = checkout.root() / "lab" / "boot"
    loaded = loaded_by(f"import sys\nsys.path.insert(0, {str(boot)!r})\nimport first_process")
    assert {path.name for path in loaded} >= {
        "network.py",
        "point_runner.py",
        "agents.py",
        "subprocesses.py",
        "messages.py",
    }
    covered = {path.resolve() for path in code_files().values()}
    assert loaded - covered == set()
    home = checkout.root() / "controller" / "src" / "testctl"
    assert covered >= {
        boot / "init.py",
        boot / "first_process.py",
        home / "testbeds" / "point_spec.py",
        home / "lab" / "machine.py",
    }


def test_the_key_of_a_lab_covers_programs_too() -> None:
    names = {path.name for path in code_files().values()}
    assert names >= {"tgen", "tcp_trace.c", "htb_mark.o", "tcp_dctcp.c"}
    assert not [name for name in names if name.endswith(".pyc")]


def test_the_keys_of_the_analysis_cover_what_it_loads() -> None:
    program = "from testctl.metrics import metrics\nimport testctl.execution.assess\nmetrics()"
    modules = ["testctl.execution.assess", *modules_below("testctl.metrics"), *modules_below("testctl.packet_actions")]
    covered = {path.resolve() for path in closure(modules).values()}
    assert loaded_by(program) - covered == set()
    assert set(analysis_keys()) == {"records", "metrics"}
    covered = {path.resolve() for path in closure(["testctl.records.store"]).values()}
    assert loaded_by("import testctl.records.store") - covered == set()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of its own, in which closure() looks."""
    home = tmp_path / "pack"
    texts = {
        "__init__": "def __getattr__(name):\n    from pack.lazy import that\n    return that\n",
        "a": "import os\nfrom pack import b\n",
        "b": "import typing\nif typing.TYPE_CHECKING:\n    import pack.types\nelse:\n    import pack.other\n",
        "c": "def late():\n    from . import d\n",
        **dict.fromkeys(("d", "lazy", "types", "other"), ""),
    }
    home.mkdir()
    for name, text in texts.items():
        (home / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(code_hash, "PACKAGES", ("pack",))
    code_hash.file_of.cache_clear()
    return home


def test_imports_are_followed_wherever_they_stand(package: Path) -> None:
    assert set(closure(["pack.a"])) == {"pack", "pack.a", "pack.b", "pack.other"}
    assert set(closure(["pack.c"])) == {"pack", "pack.c", "pack.d"}
    assert set(modules_below("pack")) == {"pack", *(f"pack.{path.stem}" for path in package.glob("[!_]*.py"))}
    assert "pack.d" in imports(package / "c.py", "pack.c")


def test_a_change_far_away_changes_the_hash(package: Path) -> None:
    before = hash_of(["pack.a"])
    (package / "d.py").write_text("x = 1\n")
    assert hash_of(["pack.a"]) == before
    (package / "other.py").write_text("x = 1\n")
    assert hash_of(["pack.a"]) != before


KEPT = """
from testctl.system import code_hash
from testctl.system.code_hash import closure
parsed = []
kept = code_hash._parsed
code_hash._parsed = lambda text, *others: parsed.append(text) or kept(text, *others)
found = closure(["testctl.execution.run"])
print(len(parsed), *sorted(found))
"""


def closure_with(cache: Path) -> tuple[int, list[str]]:
    """In a process of its own, with that cache: how many texts it parsed, and the modules."""
    env = os.environ | {"TESTCTL_CACHE": str(cache)}
    argv = [sys.executable, "-c", KEPT]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True, env=env)
    parsed, *found = done.stdout.split()
    return int(parsed), found


def test_what_a_text_imports_is_kept(tmp_path: Path) -> None:
    many, found = closure_with(tmp_path / "cache")
    assert many > 50
    assert closure_with(tmp_path / "cache") == (0, found)
    (kept,) = (tmp_path / "cache").iterdir()
    for odd in ("", "[]", '{"one": 1}', '{"one": [1]}', "\0" * 100):
        kept.write_text(odd, encoding="utf-8")
        assert closure_with(tmp_path / "cache") == (many, found)
        assert closure_with(tmp_path / "cache") == (0, found)


def test_a_cache_that_can_not_be_written_is_no_error(tmp_path: Path) -> None:
    """A file is where its directory should be."""
    (tmp_path / "cache").write_text("", encoding="utf-8")
    many, found = closure_with(tmp_path / "cache")
    assert many > 50
    assert "testctl.execution.run" in found


def test_a_changed_text_is_parsed_anew(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    for module in ("testctl.core.point", "testctl.core.outcome"):
        path.write_text(f"import {module}\n", encoding="utf-8")
        assert imports(path) == [module]
