# SPDX-License-Identifier: Apache-2.0
"""A machine that runs a plan every night: nightly.yml's timer fires, and the run arrives in influxdb.yml's InfluxDB.

It is the last test: what it installs stays on the machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from testctl.lab.built import kernel_for
from testctl.system.checkout import cache_dir

from plugins.rack.tests.machines.machines import Machines, eventually
from tests.playbooks import ROOT

pytestmark = [pytest.mark.alone, pytest.mark.machines, pytest.mark.timeout(3600), pytest.mark.flaky(reruns=0)]
WHERE = "alpha"
CHECKOUT, CACHE = "/srv/testctl", "/var/lib/testctl-nightly/cache"
MEMORY_MB = 3072
"""Of a machine that has a lab in it."""
NOT_NEEDED = (
    "ansible", "atheris", "asan_", "ubsan_", "libclang_rt", "debugpy", "duckdb", "_duckdb", "jedi", "mypy", "playwright"
)  # fmt: skip
"""The largest of the packages that only development needs."""
PLAN = """
about: two congestion controls
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, kernel, KERNEL]
  - [hosts, cc, [cubic, reno]]
  - [switch, backend, netem]
  - [switch:receiver, rate, 20mbit]
  - [bulk, bytes, 100kB]
expect:
  - {name: too fast, metric: goodput_bps, min: 1gbit}
"""
"""Its points fail, and are uploaded all the same."""
UPLOAD = "testctl-nightly-upload.service"


@pytest.fixture
def controller(up: Machines) -> Iterator[Path]:
    """An inventory whose machine is the controller and has InfluxDB; the checkout and a kernel are there."""
    up.tool("off", WHERE)
    replace(up.rack, memory_mb=MEMORY_MB).save()
    assert up.tool("on", WHERE).code == 0
    eventually(lambda: up.ssh(WHERE, "true").code == 0, f"{WHERE} answers SSH", pause_s=5)
    _send_checkout(up)
    kernel = kernel_for("6.12").directory
    up.send(WHERE, kernel.parent, [kernel.name], f"{CACHE}/kernels")
    own = kernel.name.replace("6.12", "mine")
    done = up.ssh(
        WHERE, f"mv {CACHE}/kernels/{kernel.name} {CACHE}/kernels/{own} && printf {own} >{CACHE}/kernels/mine.name"
    )
    assert done.code == 0, done.said
    if (cache_dir() / "cc").exists():
        up.send(WHERE, cache_dir(), ["cc"], CACHE)
    done = up.ssh(WHERE, "apt-get -qq update && apt-get -qq -y install gcc libc6-dev 2>&1", timeout_s=900)
    assert done.code == 0, done.said
    inventory = up.state / "inventory-other"
    hosts = yaml.safe_load((up.inventory / "hosts.yaml").read_text(encoding="utf-8"))
    mine = {"hosts": {WHERE: hosts["testctl_hosts"]["hosts"][WHERE]}}
    shutil.copytree(up.inventory, inventory)
    (inventory / "hosts.yaml").write_text(
        yaml.safe_dump({"testctl_controller": mine, "testctl_influxdb": mine}), encoding="utf-8"
    )
    try:
        yield inventory
    finally:
        shutil.rmtree(inventory)  # `plugins/rack/tools/rack down` removes what plugins/rack/tools/rack has made


def _send_checkout(up: Machines) -> None:
    """The files of this checkout with its virtual environment, both at another place there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    up.send(WHERE, ROOT, [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()], CHECKOUT)
    (packages,) = (ROOT / ".venv" / "lib").glob("python3*/site-packages")
    there = [one for one in packages.iterdir() if not one.name.startswith(NOT_NEEDED) and "mypyc" not in one.name]
    programs = [ROOT / ".venv" / "bin" / "testctl", ROOT / ".venv" / "pyvenv.cfg", ROOT / "agents" / "tgen" / "tgen"]
    programs += (ROOT / "controller" / "src" / "testctl").glob("*.so")
    up.send(WHERE, ROOT, [str(one.relative_to(ROOT)) for one in (*programs, *there)], CHECKOUT)
    venv = f"{CHECKOUT}/.venv"
    moved = f"$(grep -rlIF {ROOT} {venv}/bin {venv}/lib/*/site-packages/*.pth {venv}/lib/*/site-packages/__editable__*)"
    done = up.ssh(
        WHERE,
        f"ln -s /usr/bin/python3 {venv}/bin/python && sed -i 's|^home = .*|home = /usr/bin|' {venv}/pyvenv.cfg"
        f" && sed -i s,{ROOT},{CHECKOUT},g {moved}",
    )
    assert done.code == 0, done.said


def _asked(up: Machines, query: str) -> list[dict[str, Any]]:
    """The series that InfluxDB answers with."""
    program = (
        "import sys, urllib.parse, urllib.request as r; print(r.urlopen('http://127.0.0.1:8086/query?' + "
        "urllib.parse.urlencode({'db': 'testctl', 'q': sys.argv[1]})).read().decode())"
    )
    done = up.ssh(WHERE, f'python3 -c "{program}" "{query}"')
    assert done.code == 0, done.said
    found: list[dict[str, Any]] = json.loads(done.said)["results"][0].get("series", [])
    return found


def test_the_timer_fires_and_the_run_is_in_influxdb(up: Machines, controller: Path) -> None:
    done = up.play("influxdb", inventory=controller)
    assert done.code == 0, done.said
    assert up.ssh(WHERE, f"cat >{CHECKOUT}/night.yaml <<'END'\n{PLAN.replace('KERNEL', 'mine')}END").code == 0
    given = {
        "nightly_checkout": CHECKOUT, "nightly_plan": "night.yaml", "nightly_kernels": [], "nightly_budget": "1h",
        "nightly_when": "*-*-* *:0/2:00", "nightly_influxdb_url": "http://127.0.0.1:8086",
    }  # fmt: skip
    words = ["-e", json.dumps(given)]
    done = up.play("nightly", *words, inventory=controller)
    assert done.code == 0, done.said
    again = up.play("nightly", *words, inventory=controller)
    assert again.code == 0, again.said
    assert set(again.changed.values()) == {0}, again.said

    def uploaded() -> bool:
        return "batches written" in up.ssh(WHERE, f"journalctl --output=cat --unit={UPLOAD}").said

    try:
        eventually(uploaded, "the run is uploaded", 1200.0, pause_s=10)
    except AssertionError as error:
        raise AssertionError(up.ssh(WHERE, "journalctl --unit='testctl-nightly*' | tail -n 60").said) from error
    assert up.ssh(WHERE, "systemctl disable --now testctl-nightly.timer").code == 0
    said = up.ssh(WHERE, "journalctl --output=cat --unit=testctl-nightly.service").said
    assert "the first nightly run of this plan here" in said
    (counted,) = _asked(up, "SELECT count(wall_s) FROM points WHERE verdict = 'fail'")
    assert counted["values"][0][1] >= 2
    (plans,) = _asked(up, "SHOW TAG VALUES FROM runs WITH KEY = plan")
    assert plans["values"] == [["plan", "night"]]
