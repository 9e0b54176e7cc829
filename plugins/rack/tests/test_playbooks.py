# SPDX-License-Identifier: Apache-2.0
"""What every playbook keeps to, and what those say that are called with a misspelt inventory."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.playbooks import PLAYBOOKS, ROLES, ROOT, play, play_here


def tasks(found: Any) -> Iterator[dict[str, Any]]:
    """Every task of a file, also those in blocks."""
    for one in found if isinstance(found, list) else []:
        if isinstance(one, dict):
            yield one
            for part in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks"):
                yield from tasks(one.get(part))


def test_root_follows_no_link_where_it_gives_files_away() -> None:
    """A task with an owner other than root follows no link; directories are made by the role service_directories."""
    wrong, seen = [], 0
    for path in sorted(PLAYBOOKS.rglob("*.yml")):
        for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            for given in task.values():
                if not isinstance(given, dict) or given.get("owner", "root") == "root":
                    continue
                seen += 1
                if given.get("follow") is not False:
                    wrong.append(f"{path.relative_to(ROOT)}: {task.get('name')}: want follow: false")
                if given.get("state") == "directory" and path.parents[1].name != "service_directories":
                    wrong.append(f"{path.relative_to(ROOT)}: {task.get('name')}: want the role service_directories")
    assert wrong == []
    assert seen >= 2


@pytest.mark.parametrize("playbook", ["deploy.yml", "playbooks/check.yml"])
@pytest.mark.parametrize("group", ["testctl_hosts", "testctl_switches", "testctl_controller"])
def test_a_misspelt_or_missing_group_is_refused_before_any_host_is_contacted(
    tmp_path: Path, group: str, playbook: str
) -> None:
    inventory = tmp_path / "rack"
    shutil.copytree(ROOT / "inventory" / "rack-example", inventory)
    hosts = inventory / "hosts.yaml"
    text = hosts.read_text(encoding="utf-8")
    hosts.write_text(text.replace(f"{group}:", f"{group}x:"), encoding="utf-8")
    done = play(playbook, "-i", str(inventory))
    assert done.code != 0
    assert f"group {group}x: want a group of testctl's, testctl_hosts, testctl_switches," in done.in_one_line
    hosts.write_text(text.replace(f"{group}:", "others:"), encoding="utf-8")
    done = play(playbook, "-i", str(inventory))
    assert done.code != 0
    wanted = f"want an inventory with hosts in group {group}; got none: give it with -i, as in ansible-playbook -i "
    assert f"{wanted}INVENTORY {playbook}" in done.in_one_line


def test_the_example_of_a_night_in_the_lab_comes_as_far_as_systemd() -> None:
    done = play("playbooks/nightly.yml", "-i", "inventory/nightly-example", "--check")
    assert done.code == 0 or "want systemd" in done.said, done.said


def test_a_misspelt_variable_is_refused_before_any_host_is_contacted(tmp_path: Path) -> None:
    inventory = tmp_path / "rack"
    shutil.copytree(ROOT / "inventory" / "rack-example", inventory)
    hosts = inventory / "hosts.yaml"
    text = hosts.read_text(encoding="utf-8").replace("testctl_ports:", "testctl_port:")
    hosts.write_text(text.replace("testctl_device: ens2f0 #", "testctl_devise: ens2f0 #"), encoding="utf-8")
    done = play("deploy.yml", "-i", str(inventory))
    assert done.code != 0
    assert "alpha: testctl_devise: want a variable of testctl's; did you mean testctl_device?" in done.said
    assert "s1: testctl_port: want a variable of testctl's; did you mean testctl_ports?" in done.said
    assert "unreachable=0" in done.said
    assert "alpha  " not in done.said, "no host has a line of the recap"


@pytest.mark.parametrize(
    ("package", "checksum"),
    [
        ("http://192.0.2.1/grafana.deb", f"sha256:{'0' * 64}"), ("https://192.0.2.1/grafana.deb", ""),
        ("https://192.0.2.1/grafana", "md5:0"),
    ],
)  # fmt: skip
def test_a_package_from_a_network_has_a_checksum(tmp_path: Path, package: str, checksum: str) -> None:
    given = {"grafana_package": package, "grafana_checksum": checksum, "ansible_facts": {"service_mgr": "systemd"}}
    done = play_here(tmp_path, [{"roles": ["grafana"]}], "--check", **given)
    assert done.code != 0
    assert "want for grafana_package an https:// address and its grafana_checksum" in done.said


def kernel_entries(*releases: str) -> str:
    begin = "menuentry 'Linux {0}' --class os $menuentry_id_option 'gnulinux-{0}-advanced-01ab' {{\n"
    return "".join(map(f"{begin}\tlinux /vmlinuz-{{0}}\n}}}}\n".format, releases))


@pytest.mark.parametrize(
    ("left", "unkept"),
    [
        (["6.1.0-50-amd64"], True), (["6.12.9-testctl-mine", "6.1.0-50-amd64"], True),
        (["6.12.9-testctl-mine2", "6.1.0-50-amd64"], False), (["6.12.9-testctl-my", "6.1.0-50-amd64"], False),
    ],
)  # fmt: skip
def test_grub_chooses_again_when_no_kernel_of_testctls_is_left(tmp_path: Path, left: list[str], unkept: bool) -> None:
    """Also one whose name begins with that of the removed one is left."""
    task = next(
        task
        for task in tasks(yaml.safe_load((ROLES / "kernel/tasks/absent.yml").read_text(encoding="utf-8")))
        if "unkeep" in str(task.get("ansible.builtin.script"))
    )
    shown = {"ansible.builtin.debug": {"msg": "lets GRUB choose"}, "when": task["when"]}
    menu = base64.b64encode(kernel_entries(*left).encode()).decode()
    given = {"kernel_menu": {"content": menu}, "kernel_releases": ["6.12.9-testctl-mine"]}
    done = play_here(tmp_path, [{"tasks": [shown]}], **given)
    assert done.code == 0, done.said
    assert ("lets GRUB choose" in done.said) == unkept


ADVANCED = "submenu 'Advanced' $menuentry_id_option 'gnulinux-advanced-01ab' {{\n{0}}}\n"


@pytest.mark.parametrize(
    ("menu", "entry"),
    [
        (ADVANCED.format(kernel_entries("6.1.0", "6.12.9")), "gnulinux-advanced-01ab>gnulinux-6.12.9-advanced-01ab"),
        (kernel_entries("6.1.0", "6.12.9"), "gnulinux-6.12.9-advanced-01ab"),  # GRUB_DISABLE_SUBMENU=y
        (kernel_entries("6.1.0", "6.12.90"), ""), (ADVANCED.format(kernel_entries("6.1.0")), ""),
    ],
)  # fmt: skip
def test_the_entry_of_a_kernel_is_found_where_the_menu_has_it(tmp_path: Path, menu: str, entry: str) -> None:
    kernel = yaml.safe_load((PLAYBOOKS / "kernel.yml").read_text(encoding="utf-8"))[1]["tasks"]
    of_menu = [task for task in kernel if task["name"] in ("Find the kernel's entry", "The menu has the kernel")]
    shown = {"ansible.builtin.debug": {"msg": "entry={{ kernel_entry }}="}}
    given = {"kernel_menu": {"content": base64.b64encode(menu.encode()).decode()}, "kernel_release": "6.12.9"}
    done = play_here(tmp_path, [{"tasks": [*of_menu, shown]}], **given)
    if entry:
        assert f"entry={entry}=" in done.said, done.said
    else:
        assert "localhost: want Linux 6.12.9 in /boot/grub/grub.cfg; got none" in done.said
    assert (done.code == 0) is bool(entry)


OWN, LEFT = "menuentry 'own' {\n}\n", "# testctl: begin\nmenuentry 'testctl: one boot' {\n}\n# testctl: end\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [(LEFT, None), (OWN + LEFT, OWN), (LEFT + OWN, OWN), (OWN, OWN)],
    ids=["alone", "behind", "before", "somebody's"],
)
def test_teardown_removes_the_entry_for_one_boot(tmp_path: Path, before: str, after: str | None) -> None:
    file = tmp_path / "custom.cfg"
    file.write_text(before, encoding="utf-8")
    task = {"ansible.builtin.include_role": {"name": "agent", "tasks_from": "one_boot"}}
    done = play_here(tmp_path, [{"tasks": [task]}], agent_grub=str(tmp_path))
    assert done.code == 0, done.said
    assert (file.read_text(encoding="utf-8") if file.exists() else None) == after


@pytest.mark.parametrize(
    ("variable", "value", "right"),
    [
        ("testctl_sde", "/opt/bf-sde-9.13.1", True), ("testctl_sde", "/opt/a b; reboot", False),
        ("testctl_sde", "/opt/$(reboot)", False), ("testctl_sde", "/root/sde", False),
        ("testctl_bfrt", "127.0.0.1:50052", True), ("testctl_bfrt", "tofino-1.example:50052", True),
        ("testctl_bfrt", "$(reboot):50052", False),
    ],
)  # fmt: skip
def test_what_a_script_of_root_reads_is_words_alone(variable: str, value: str, right: bool) -> None:
    text = (ROLES / "switch_agent/tasks/main.yml").read_text(encoding="utf-8")
    (pattern,) = re.findall(rf"- {variable} \| default\(''\) is regex\('(.*)'\)", text)
    assert bool(re.search(pattern, value)) is right
