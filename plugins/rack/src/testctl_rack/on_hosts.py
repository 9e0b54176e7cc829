# SPDX-License-Identifier: Apache-2.0
"""Runs a Python script of the project on hosts of an inventory, by Ansible; leaves no file there."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testctl.system.subprocesses import ended
from testctl.system.temporary import temporary
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.spec.untrusted import loads

from testctl_rack import ansible, boot_once

LIMIT_S = 300.0
PYTHON = "/usr/bin/python3"
_MODULE = "ansible.builtin.command"


def on_hosts(
    inventory: Path, hosts: Sequence[str], script: Path, words: Sequence[str], limit_s: float = LIMIT_S
) -> Mapping[str, dict[str, Any]]:
    """Host → the JSON object that the script prints there; {"error": why} where it could not be run.

    words: arguments of the script.  Raises TestbedError for one with other characters than a release has: Ansible
    would evaluate {{ }} in it, here.
    """
    if wrong := [word for word in words if not boot_once.RELEASE.fullmatch(word)]:
        raise TestbedError(
            f"{script.name} on {', '.join(hosts)}: want words of {boot_once.RELEASE.pattern}; got {wrong[0]!r}"
        )
    call = ansible.call("ansible", inventory)
    if call is None:
        raise PlanError(f"--testbed {inventory}: ansible is not there: make setup installs it in .venv")
    code = base64.b64encode(script.read_bytes()).decode("ascii")
    argv = [PYTHON, "-c", f"import base64;exec(base64.b64decode('{code}'))", *words]
    # Pipelining: the module goes through SSH's standard input, and nothing of it lies on the host.
    env = call.env | {"ANSIBLE_PIPELINING": "1"}
    with temporary("testctl-ansible-") as folder:
        whole = [*call.words, ",".join(hosts), "--forks", str(len(hosts)), "-m", _MODULE,
                 "-a", json.dumps({"argv": argv}), "--tree", str(folder)]  # fmt: skip
        code_, said = ended(whole, cwd=call.cwd, env=env, timeout_s=limit_s)
        if code_ is None:
            said = f"ansible did not end within {limit_s:g} s"
        return {host: _result(folder / host, said) for host in hosts}


def _result(path: Path, said: str) -> dict[str, Any]:
    try:
        found = loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"error": f"Ansible has no result: {said.strip()[-500:] or 'it printed nothing'}"}
    try:
        answer = loads(str(found.get("stdout", "")))
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    why = found.get("msg") or found.get("stderr") or found.get("module_stderr") or found
    return {"error": f"Ansible: {str(why).strip()[:500]}"}


def all_of(results: Mapping[str, Mapping[str, Any]], who: Mapping[str, object]) -> None:
    """Raises TestbedError with the errors of all hosts; who: how to name each."""
    if wrong := [f"{who[host]}: {found['error']}" for host, found in sorted(results.items()) if "error" in found]:
        raise TestbedError("\n".join(wrong))
