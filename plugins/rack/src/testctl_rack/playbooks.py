# SPDX-License-Identifier: Apache-2.0
"""Runs a playbook of the checkout on hosts of an inventory."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testctl.system.subprocesses import ended
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.spec.untrusted import words

from testctl_rack import ansible

LIMIT_S = 3600.0
_FAILED = re.compile(r"^(?:fatal|failed): \[([^\]]+?)(?: -> [^\]]*)?\].*?=> (\{.*\})$", re.MULTILINE)
_RECAP = re.compile(r"^(\S+)\s+: .*\bchanged=(\d+)", re.MULTILINE)


def play(inventory: Path, name: str, hosts: Sequence[str], variables: Mapping[str, Any]) -> dict[str, int]:
    """Run playbooks/NAME on hosts; how many tasks have changed something, by host.

    Raises PlanError where there are no playbooks, TestbedError with what failed on which host.
    """
    home, call = ansible.playbooks(), ansible.call("ansible-playbook", inventory)
    if not (home / name).is_file() or call is None:
        raise PlanError(f"--testbed {inventory}: want a checkout that is set up, with playbooks/{name} and Ansible")
    argv = [*call.argv, str(home / name), "--limit", ",".join(("localhost", *hosts)), "-e", json.dumps(dict(variables))]
    code, output = ended(argv, cwd=call.cwd, env=call.env, timeout_s=LIMIT_S)
    if code is None:
        raise TestbedError(f"playbooks/{name} did not end within {LIMIT_S:g} s")
    if code != 0:
        raise TestbedError(failures(output) or f"playbooks/{name}: exit {code}: {words(output.strip()[-500:])}")
    return changed(output)


def failures(output: str) -> str:
    """What a playbook's output says of hosts that failed: one line each."""
    errors = []
    for host, text in _FAILED.findall(output):
        try:
            result = json.loads(text)
        except ValueError:
            result = {}
        why = _why(result) or text
        errors.append(words(why if why.startswith(host) else f"{host}: {why}"))
    return "\n".join(dict.fromkeys(errors))


def _why(result: Mapping[str, Any]) -> str:
    """A script's own error; else what the module reports."""
    try:
        own = json.loads(str(result.get("stdout", "")))["error"]
    except (ValueError, KeyError, TypeError):
        own = ""
    # SSH reports the end of a connection with a terminal among a script's errors.
    lines = [
        line for line in str(result.get("stderr", "")).splitlines() if not line.startswith("Shared connection to ")
    ]
    return str(own or "\n".join(lines) or result.get("msg") or "").strip()


def changed(output: str) -> dict[str, int]:
    """How many tasks of a playbook changed something, by host."""
    recap = output.partition("PLAY RECAP")[2]
    return {host: int(count) for host, count in _RECAP.findall(recap) if host != "localhost"}
