# SPDX-License-Identifier: Apache-2.0
"""What starts a nightly run: the systemd unit and its timer, the playbook, the workflows."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from testctl.metrics import metric_names
from testctl.plan import load_plan

from tests.playbooks import PLAYBOOKS, ROLES, ROOT, Done, play, run

ROLE = ROLES / "nightly"
WORKFLOWS = ROOT / ".github" / "workflows"


def rendered(name: str, **words: Any) -> str:
    known = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
    made = jinja2.Environment(  # as Ansible has it
        loader=jinja2.FileSystemLoader(ROLE / "templates"), undefined=jinja2.StrictUndefined, trim_blocks=True,
        autoescape=False,
    )  # fmt: skip
    given = {**known, **words}
    given |= {key: made.from_string(given[key]).render(given) for key in ("nightly_results", "nightly_cache")}
    return made.get_template(name).render(given) + "\n"


UNITS = {"testctl-nightly.service": "unit.service.j2", "testctl-nightly.timer": "unit.timer.j2",
         "testctl-nightly-upload.service": "unit-upload.service.j2"}  # fmt: skip
URL = "http://127.0.0.1:8086"


def test_the_unit_and_its_timer_are_well_formed(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    program = tmp_path / ".venv" / "bin" / "testctl"
    program.parent.mkdir(parents=True)
    program.symlink_to("/bin/true")
    for unit, template in UNITS.items():
        text = rendered(template, nightly_checkout=str(tmp_path), nightly_influxdb_url=URL)
        (tmp_path / unit).write_text(text, encoding="utf-8")
    units = [str(path) for path in sorted(tmp_path.glob("testctl-nightly*.*"))]
    assert run([analyze, "verify", "--man=no", *units]) == Done(0, "")
    when = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))["nightly_when"]
    assert run([analyze, "calendar", when]).code == 0


def test_the_unit_calls_the_command_as_it_is() -> None:
    (line,) = re.findall(r"ExecStart=(.*)", rendered("unit.service.j2", nightly_checkout="/c", nightly_jobs=3))
    assert line == (
        "/c/.venv/bin/testctl nightly plans/nightly.yaml --budget 30m --testbed lab"
        " --results /var/lib/testctl-nightly/results --resume --jobs 3"
    )
    rack = {"nightly_testbed": "inventory/mine", "nightly_wait": "2h"}
    text = rendered("unit.service.j2", nightly_checkout="/c", **rack)
    (line,) = re.findall(r"ExecStart=(.*)", text)
    assert line.endswith(" --testbed inventory/mine --results /var/lib/testctl-nightly/results --resume --wait 2h")
    assert "\nTimeoutStopSec=900\n" in text, "hosts boot their kernels again"
    assert "--jobs" not in rendered("unit.service.j2", nightly_checkout="/c")
    assert "\nUser=testctl-nightly\n" in rendered("unit.service.j2", nightly_checkout="/c"), "the lab needs no root"


def test_each_run_is_uploaded_whatever_its_verdict_where_there_is_a_server() -> None:
    upload = "testctl-nightly-upload.service"
    assert upload not in rendered("unit.service.j2", nightly_checkout="/c")
    text = rendered("unit.service.j2", nightly_checkout="/c", nightly_influxdb_url=URL)
    assert f"\nOnSuccess={upload}\nOnFailure={upload}\n" in text
    words = ["--org", "lab", "--bucket", "testctl"]
    text = rendered(
        "unit-upload.service.j2", nightly_checkout="/c", nightly_influxdb_url=URL, nightly_influxdb_options=words
    )
    (line,) = re.findall(r"ExecStart=(.*)", text)
    assert line == (
        f"/c/.venv/bin/testctl upload /var/lib/testctl-nightly/results/latest --url {URL} --org lab --bucket testctl"
    )
    assert "token" not in text.lower(), "it is in a file that root alone reads"
    text = rendered("unit.service.j2", nightly_checkout="/c", nightly_influxdb_url=URL, nightly_name="rack")
    assert "\nOnSuccess=testctl-rack-upload.service\n" in text
    assert " --results /var/lib/testctl-rack/results " in text


def test_a_run_that_was_missed_waits_for_the_network_where_its_machines_are() -> None:
    line = "\nAfter=network-online.target time-sync.target\n"
    rack = rendered("unit.service.j2", nightly_checkout="/c", nightly_testbed="inventory/mine")
    assert line in rack
    assert "Environment=HOME=" not in rack, "its user's own SSH keys boot the hosts"
    assert line not in rendered("unit.service.j2", nightly_checkout="/c")
    text = rendered("unit.service.j2", nightly_checkout="/c", nightly_options=["--source", "/srv/linux"])
    assert " --resume --source /srv/linux\n" in text


REFUSED = [
    ("nightly_budget", "0m", "controller: nightly_budget: want a time such as 30m; got 0m"),
    ("nightly_name", "../x", "controller: nightly_name: want a name of a-z, 0-9 and -; got ../x"),
    ("nightly_testbed", "netns", "want nightly_testbed lab, or an inventory"),
    ("nightly_wait", "2h", "want nightly_testbed lab, or an inventory"),
    ("nightly_plan", "my plan.yaml", "without spaces, quotes"),
    ("nightly_options", ["--set", "bulk.rate=1%"], "without spaces, quotes"),
    ("nightly_influxdb_url", "http://me:secret@host", "without a password, quotes"),
    ("nightly_influxdb_url", "http://host/'a", "without a password, quotes"),
    ("nightly_influxdb_url", 'http://host/"', "without a password, quotes"),
    ("nightly_influxdb_url", "http://host/\\x", "without a password, quotes"),
    ("nightly_influxdb_password", "secret", "or a user with a password"),
]


@pytest.mark.parametrize(("name", "value", "want"), REFUSED)
def test_what_would_fail_every_night_is_refused(tmp_path: Path, name: str, value: str | list[str], want: str) -> None:
    program = tmp_path / ".venv" / "bin" / "testctl"
    program.parent.mkdir(parents=True)
    program.symlink_to("/bin/true")
    done = checked(tmp_path, {name: value}, "systemd")
    assert done.code == 2, done.said
    assert want in done.in_one_line
    assert "secret" not in done.said


def checked(where: Path, more: dict[str, Any], service_mgr: str) -> Done:
    """The playbook in check mode."""
    given = {"ansible_facts": {"service_mgr": service_mgr}, "nightly_checkout": str(where), **more}
    return play("-i", "inventory/rack-example", str(PLAYBOOKS / "nightly.yml"), "--check", "-e", json.dumps(given))


def test_the_playbook_says_what_is_missing_in_check_mode(tmp_path: Path) -> None:
    done = checked(tmp_path, {}, "runit")
    said = done.in_one_line
    assert done.code == 2
    assert "want systemd, which starts the nightly run; got runit" in said
    checkout = "nightly_checkout: want a checkout that is set up (make setup)"
    assert f"{checkout}; got {tmp_path}, which has no .venv/bin/testctl" in said
    assert "nightly_budget: want a time such as 30m; got" not in said


@pytest.mark.parametrize("name", ["ci", "nightly"])
def test_a_workflow_pins_its_actions_and_names_files_that_are_there(name: str) -> None:
    text = (WORKFLOWS / f"{name}.yml").read_text(encoding="utf-8")
    (job,) = yaml.safe_load(text)["jobs"].values()
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+(/[a-z]+)?@[0-9a-f]{40}", one) for one in used), "a tag can be moved"
    said = re.findall(r"uses: (\S+)@\S+ # v\d+\.\d+\.\d+$", text, re.MULTILINE)
    assert said == [one.partition("@")[0] for one in used], "the version, for who reads it"
    called = {
        word for step in job["steps"] for word in re.findall(r"(?:^|\s)((?:\.ci|tools)/\w+)", step.get("run", ""))
    }
    assert called == ({".ci/run", "tools/audit"} if name == "ci" else {"tools/setup"})
    assert all((ROOT / path).is_file() for path in called)


def test_the_nightly_plan_covers_all_triples() -> None:
    from testctl.plan import coverage

    plan = load_plan(ROOT / "plans" / "nightly.yaml", metrics=metric_names())
    assert [found.share for found in coverage(plan)] == [1, 1, 1]
    swept = {factor.param for factor in plan.factors}
    assert swept >= {"cc", "kernel", "mtu", "tso", "gro", "tcp_ecn", "ecn_threshold", "buffer", "rate",
                     "delay", "fate", "pattern"}  # fmt: skip
