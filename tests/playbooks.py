# SPDX-License-Identifier: Apache-2.0
"""Ansible as tests start it: with the settings of this checkout, whatever the directory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PLAYBOOKS = ROOT / "playbooks"
ROLES = PLAYBOOKS / "roles"
PROGRAM = str(Path(sys.executable).with_name("ansible-playbook"))
SETTINGS = {"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8",
            "COLUMNS": "200"}  # fmt: skip


@dataclass(frozen=True)
class Done:
    """A program's exit code and output."""

    code: int
    said: str

    @property
    def in_one_line(self) -> str:
        """The output without the line ends with which Ansible breaks a message."""
        return " ".join(self.said.split())

    @property
    def changed(self) -> dict[str, int]:
        """How many tasks of a playbook changed something, by host."""
        recap = re.findall(r"^(\S+)\s+:.*\bchanged=(\d+)", self.said.partition("PLAY RECAP")[2], re.MULTILINE)
        return {name: int(count) for name, count in recap}


def run(argv: list[str], timeout_s: float = 1500.0, cwd: Path = ROOT) -> Done:
    """A program that ended."""
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout_s,
        check=False, env=os.environ | SETTINGS, cwd=cwd,
    )  # fmt: skip
    return Done(done.returncode, done.stdout)


def play(*words: str, cwd: Path = ROOT) -> Done:
    """ansible-playbook with these words."""
    return run([PROGRAM, *words], cwd=cwd)


def play_here(where: Path, plays: list[dict[str, Any]], *words: str, **variables: Any) -> Done:
    """Plays of a test, on this machine; where: a directory for their file."""
    here = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    (where / "play.yml").write_text(json.dumps([here | one for one in plays]), encoding="utf-8")
    given = json.dumps({"ansible_python_interpreter": sys.executable, **variables})
    return play("-i", "localhost,", "-e", given, str(where / "play.yml"), *words)
