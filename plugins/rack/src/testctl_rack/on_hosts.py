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
    inventory: Path, hosts: Sequence[str], script: Path, arguments: Sequence[str], limit_s: float = LIMIT_S
) -> Mapping[str, dict[str, Any]]:
    """Host → the JSON object that the script prints there; {"error": why} where it could not be run.

    Raises TestbedError for an argument with other characters than a release has: Ansible would evaluate {{ }} in it,
    here.
    """
    if wrong := [argument for argument in arguments if not boot_once.RELEASE.fullmatch(argument)]:
        raise TestbedError(
            f"{script.name} on {', '.join(hosts)}: want words of {boot_once.RELEASE.pattern}; got {wrong[0]!r}"
        )
    call = ansible.call("ansible", inventory)
    if call is None:
        raise PlanError(f"--testbed {inventory}: ansible is not there: make setup installs it in .venv")
    code = base64.b64encode(script.read_bytes()).decode("ascii")
    argv = [PYTHON, "-c", f"import base64;exec(base64.b64decode('{code}'))", *arguments]
    # Pipelining: the module goes through SSH's standard input, and nothing of it lies on the host.
    env = call.env | {"ANSIBLE_PIPELINING": "1"}
    with temporary("testctl-ansible-") as folder:
        ansible_argv = [*call.argv, ",".join(hosts), "--forks", str(len(hosts)), "-m", _MODULE,
                        "-a", json.dumps({"argv": argv}), "--tree", str(folder)]  # fmt: skip
        exit_code, output = ended(ansible_argv, cwd=call.cwd, env=env, timeout_s=limit_s)
        if exit_code is None:
            output = f"ansible did not end within {limit_s:g} s"
        return {host: _result(folder / host, output) for host in hosts}


def _result(path: Path, output: str) -> dict[str, Any]:
    try:
        result = loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"error": f"Ansible has no result: {output.strip()[-500:] or 'it printed nothing'}"}
    try:
        reply = loads(str(result.get("stdout", "")))
    except ValueError:
        reply = None
    if isinstance(reply, dict):
        return reply
    why = result.get("stderr") or result.get("module_stderr") or result.get("msg") or result
    return {"error": f"Ansible: {str(why).strip()[-500:]}"}


def all_of(results: Mapping[str, Mapping[str, Any]], who: Mapping[str, object]) -> None:
    """Raises TestbedError with the errors of all hosts; who: how to name each."""
    if wrong := [f"{who[host]}: {result['error']}" for host, result in sorted(results.items()) if "error" in result]:
        raise TestbedError("\n".join(wrong))
