# SPDX-License-Identifier: Apache-2.0
"""Commands of other distributions: those that are installed, broken, there twice, and not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest
from testctl.cli.extensions import GROUP, KNOWN
from testctl.execution.pool import POOLS
from testctl.system import checkout

from tests.cli_commands import READY

COMMANDS = """
from typing import Annotated

import typer

print("imported")
app = typer.Typer(help="Two commands.")


@app.command()
def one() -> None:
    print("one")


@app.command()
def two() -> None:
    print("two")


def greet(name: str, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
    '''Greet somebody.'''
    print(name.upper() if loud else name)


number = 7
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where installed packages are: those of this Python without the commands and pools of other distributions."""
    place = tmp_path / "site-packages"
    place.mkdir()
    for found in Path(sysconfig.get_path("purelib")).iterdir():
        entries = found / "entry_points.txt"
        declared = entries.read_text(encoding="utf-8") if entries.is_file() else ""
        if found.suffix != ".pth" and not any(f"[{group}]" in declared for group in (GROUP, POOLS.name)):
            (place / found.name).symlink_to(found)
    return place


def install(place: Path, name: str, commands: dict[str, str], **modules: str) -> None:
    """A made-up distribution, version 1.0: its commands {word: value} and its modules."""
    info = place / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    entries = [f"[{GROUP}]", *(f"{word} = {value}" for word, value in commands.items())]
    (info / "entry_points.txt").write_text("\n".join(entries), encoding="utf-8")
    for module, text in modules.items():
        (place / f"{module}.py").write_text(text, encoding="utf-8")


EACH = f"""{READY}
import tempfile

found = []
for words in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            command(words)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found.append([code, *(file.seek(0) or file.read().decode() for file in (out, err))])
print(json.dumps(found))
"""
"""Runs commands, each in a process of its own that is forked when all is imported."""


def call(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """testctl in a Python that has the packages of `place` and no others (-S: no site-packages, no .pth)."""
    (done,) = calls(place, words)
    return done


def calls(place: Path, *commands: Sequence[str]) -> list[subprocess.CompletedProcess[str]]:
    """The same, for several commands that know nothing of each other."""
    sources = [str(checkout.root() / name / "src") for name in ("agents", "controller")]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(place), *sources]), "COLUMNS": "200"}
    argv = [sys.executable, "-S", "-c", EACH, json.dumps(commands)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environ)
    return [subprocess.CompletedProcess(argv, *one) for one in json.loads(done.stdout)]


def test_commands_of_a_made_up_distribution(path: Path) -> None:
    install(path, "made-up", {"greet": "made_up:greet", "both": "made_up:app"}, made_up=COMMANDS)
    commands = (["greet", "world", "--loud"], ["both", "two"], ["greet"], ["--help"], ["gret"])
    done, both, without_name, listed, mistyped = calls(path, *commands)
    assert (done.returncode, done.stdout, done.stderr) == (0, "imported\nWORLD\n", "")
    assert both.stdout == "imported\ntwo\n"
    assert without_name.returncode == 2
    assert "Greet somebody." in listed.stdout
    assert "Two commands." in listed.stdout
    assert "'greet'" in mistyped.stderr


def test_the_controllers_commands_import_no_other_distribution(path: Path) -> None:
    install(path, "made-up", {"greet": "made_up:greet", "params": "made_up:app"}, made_up=COMMANDS)
    for done in calls(path, ["--version"], ["params", "--help"], ["metrics"]):
        assert (done.returncode, done.stderr) == (0, "")
        assert "imported" not in done.stdout


BROKEN = {
    "nothing": ("broken0:greet", "import nothing_there", "ModuleNotFoundError: No module named 'nothing_there'"),
    "syntax": ("broken1:greet", "def greet(:", "SyntaxError: "),
    "lacks": ("broken2:greet", "", "AttributeError: "),
    "raises": ("broken3:greet", "raise SystemError('two\\nlines')", "SystemError: two lines"),
    "exits": ("broken4:greet", "raise SystemExit(5)", "SystemExit: 5"),
    "names": ("broken5:greet", "def greet(who: 'nobody'): ...", "NameError: name 'nobody' is not defined"),
    "nowhere": ("nowhere:greet", "", "ModuleNotFoundError: No module named 'nowhere'"),
    "number": ("broken7:number", COMMANDS, "want a function or a typer.Typer; got int"),
}
"""Command: its value, the text of its module, why it can't be had."""


def test_a_broken_command_names_its_distribution(path: Path) -> None:
    for number, (word, (value, module, _)) in enumerate(BROKEN.items()):
        install(path, f"made-up-{word}", {word: value}, **{f"broken{number}": module})
    each = [[word, *more] for word in BROKEN for more in (["world", "--loud"], ["--help"])]
    *run, listed, own = calls(path, *each, ["--help"], ["metrics"])
    for (word, *_), done in zip(each, run, strict=True):
        value, _, why = BROKEN[word]
        assert done.returncode == 3, done
        (sentence,) = done.stderr.splitlines()
        assert sentence.startswith(f"testctl {word}: {value} of the distribution made-up-{word} 1.0")
        assert why in sentence
    assert (listed.returncode, listed.stderr) == (0, "")
    assert all(f"made-up-{word} 1.0" in listed.stdout for word in BROKEN)
    assert own.returncode == 0


def test_a_command_of_two_distributions(path: Path) -> None:
    for name in ("second", "first"):
        install(path, name, {"greet": f"{name}:greet"}, **{name: COMMANDS})
    done = call(path, "greet", "world")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "testctl greet: want this command of one distribution; got it of first 1.0, second 1.0\n"


def test_known_commands_that_are_not_installed(path: Path) -> None:
    each = [[word, *more] for word in KNOWN for more in ([], ["run", "--no-such-option"], ["--help"])]
    *known, nonsense, listed = calls(path, *each, ["nonsense"], ["--help"])
    for (word, *_), done in zip(each, known, strict=True):
        name, place = KNOWN[word]
        assert f'name = "{name}"' in (checkout.root() / place / "pyproject.toml").read_text(encoding="utf-8")
        assert (done.returncode, done.stdout) == (2, "")
        (sentence,) = done.stderr.splitlines()
        assert f"the distribution {name} has this command, and it is not installed" in sentence
        assert f"│ {word} " not in listed.stdout
    assert nonsense.returncode == 2


def test_a_cluster_that_is_not_installed(path: Path) -> None:
    plan = str(checkout.root() / "plans" / "one_flow.yaml")
    done = call(path, "run", plan, "--cluster", "127.0.0.1:8786", "--out", str(path / "run"))
    assert (done.returncode, done.stdout) == (2, "")
    what = "want the pool 'cluster', which comes with the distribution testctl-cluster: it is not installed"
    assert done.stderr == f"--cluster: {what} (make setup installs plugins/cluster)\n"
    assert not (path / "run").exists()
