# SPDX-License-Identifier: Apache-2.0
"""The commands of a machine's inventory: none of their words, of which one may be a password, is in an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_rack import pki, power
from testctl_rack.inventory_file import COMMANDS, Machine, rack_of

from tests.cli_commands import call

SECRET = "hunter2-canary"
LOUD = ("sh", "-c", 'echo "$0: $@ with $CANARY_OF_TEST: no route to BMC" >&2; exit 1', "ipmi", "-P", SECRET)


def machine(what: str, *command: str) -> Machine:
    return Machine("alpha", "host", "192.0.2.1:7400", commands={what: command})


@pytest.mark.parametrize("what", COMMANDS)
@pytest.mark.parametrize("command", [LOUD, ("/nowhere/ipmitool", "-P", SECRET), ("sleep", "9", f"--x={SECRET}")])
def test_an_error_has_no_word_of_the_command(
    monkeypatch: pytest.MonkeyPatch, what: str, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(power, "COMMAND_S", 0.5)
    one = machine(what, *command)
    if what in ("power_on", "power_off"):
        one = Machine("alpha", "host", "192.0.2.1:7400", commands={"power_on": command, "power_off": command})
        what = "power_off"
    if what == "console":
        text = power.last_lines(one)
    else:
        with pytest.raises(TestbedError) as failed:
            power.cycle(one)
        text = str(failed.value)
        assert failed.value.__cause__ is None
    assert SECRET not in text
    assert f"host alpha (192.0.2.1:7400): testctl_{what}: {command[0]}: " in text


def test_what_the_program_says_is_kept() -> None:
    with pytest.raises(TestbedError, match="no route to BMC"):
        power.cycle(machine("power_cycle", *LOUD))


@pytest.mark.parametrize("given", [f"ipmitool -P '{SECRET}", [SECRET], {"x": SECRET}])
def test_a_wrong_command_is_not_shown(given: Any) -> None:
    hosts = {"testctl_hosts": {"hosts": ["alpha"]}, "_meta": {"hostvars": {"alpha": {"testctl_power_cycle": given}}}}
    with pytest.raises(PlanError, match="alpha: testctl_power_cycle: want the words of a command; got") as refused:
        rack_of(hosts, Path("inventory"))
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "words", [["status"], ["restore", "--wait", "0"], ["run", "plan.yaml"], ["plan", "plan.yaml"], ["kernel", "list"]]
)
def test_no_output_of_a_failing_command_has_a_secret_of_the_inventory(tmp_path: Path, words: list[str]) -> None:
    """Nor one of the environment."""
    secrets = {f"testctl_{what}": f"ipmitool -P {SECRET}" for what in COMMANDS}
    secrets |= dict.fromkeys(("ansible_password", "ansible_become_password", "ansible_ssh_pass", "mine"), SECRET)
    one = {"ansible_connection": "local", "testctl_device": "lo", "testctl_keys": "keys", **secrets}
    hosts = {
        name: {**one, "testctl_listen": f"127.0.0.1:{9 + n}", "testctl_address": f"10.0.0.{n}",
               "testctl_mac": f"02:00:00:00:00:0{n}"}
        for n, name in enumerate(("alpha", "beta"), 1)
    }  # fmt: skip
    ports = {"testctl_listen": "127.0.0.1:13", "testctl_ports": {"alpha": "lo", "beta": "eth0"}, **one}
    groups = {"testctl_hosts": {"hosts": hosts}, "testctl_switches": {"hosts": {"s1": ports}}}
    (tmp_path / "rack.yaml").write_text(yaml.safe_dump(groups), encoding="utf-8")
    pki.make(tmp_path / "keys", ["alpha", "beta", "s1"])
    plan = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[bulk, cc, cubic]]\n"
    (tmp_path / "plan.yaml").write_text(plan, encoding="utf-8")
    done = call(
        tmp_path, *words, "--testbed", "rack.yaml", code=None if words[0] == "plan" else 3, IPMI_PASSWORD=SECRET,
        XDG_STATE_HOME=tmp_path / "state",
    )  # fmt: skip
    assert SECRET not in done.stdout + done.stderr
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "rack.yaml"]
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []
