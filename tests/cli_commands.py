# SPDX-License-Identifier: Apache-2.0
"""The command line: a command as its user calls it, and its own list of commands."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

TESTCTL = (sys.executable, "-m", "testctl.cli.main")

READY = """
import atexit, contextlib, gc, io, json, os, sys
ended = []
@atexit.register  # the first one is called last
def exit_at_once():
    if ended:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(ended[0])
def command(words):
    sys.argv = ["testctl", *words]
    try:
        main()
        sys.exit()
    except SystemExit as exit:
        ended.extend([exit.code or 0] if isinstance(exit.code, int | None) else [])
        raise
from testctl.cli.main import _command, main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    _command()(["metrics", "--help"])
gc.freeze()
"""
"""A command in a forked process: what it had to import is there, and is not freed piece by piece at its end.  Of most
commands that was nearly all of the processor's time."""

IMPORTED = f"""{READY}
import importlib, pkgutil, testctl, testctl_agent
for package in (testctl, testctl_agent):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        with contextlib.suppress(ImportError):
            importlib.import_module(module.name)
gc.freeze()
requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
for request in requests:
    words, where, environment, out, err = json.loads(request)
    if (child := os.fork()) == 0:
        for fd, path in enumerate((os.devnull, out, err)):
            os.dup2(os.open(path, os.O_RDWR | os.O_APPEND), fd)
        os.chdir(where)
        os.environ.clear()
        os.environ.update(environment)
        command(words)
    print(child, file=answers, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)
"""
"""Forks a process for each command."""


@cache
def _imported() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", IMPORTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
    )
    atexit.register(process.communicate)
    return process


def call(
    where: Path, *words: str, code: int | None = 0, timeout_s: float = 900, **environment: object
) -> subprocess.CompletedProcess[str]:
    """A command that was run in a directory, with more in its environment; it ended with that code, None: with any."""
    env = os.environ | {name: str(value) for name, value in environment.items()}
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        process = _imported()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([words, str(where), env, out.name, err.name]) + "\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        late = not select.select([process.stdout], [], [], timeout_s)[0]
        if late:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        ended = int(process.stdout.readline())
        done = subprocess.CompletedProcess([*TESTCTL, *words], ended, out.read().decode(), err.read().decode())
    if late:
        raise subprocess.TimeoutExpired(done.args, timeout_s, done.stdout, done.stderr)
    assert code in (None, ended), done.stdout + done.stderr
    return done


def output(where: Path, *words: str, code: int = 0, **environment: object) -> str:
    """All that such a command printed."""
    done = call(where, *words, code=code, **environment)
    return done.stdout + done.stderr


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(the words, the click command) of each command of a group, those of its groups too."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def takes(command: Any, *metavars: str) -> bool:
    """Whether one of its arguments or options is one of these."""
    return any(word in metavars for one in command.params for word in (one.metavar or "").split("|"))
