# SPDX-License-Identifier: Apache-2.0
"""A kernel of one's own on machines: built from a tree, installed, booted by a plan, removed.

With minimal.config the first build takes 20 min of processor; ccache makes the next one shorter.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.lab.source import tarball_of
from testctl_agent.spec.errors import TestbedError
from testctl_rack import host_kernel

from plugins.rack.tests.machines.machines import Machines
from tests.playbooks import run

pytestmark = [pytest.mark.alone, pytest.mark.machines, pytest.mark.timeout(3600), pytest.mark.flaky(reruns=0)]
CONFIG = Path(__file__).with_name("minimal.config")
SWEEP = """
about: a flow on the host's kernel and on one's own
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, kernel, ["6.12", "mine"]]
  - [all, mtu, 1400]
  - [hosts, capture, off]
  - [bulk, bytes, 200kB]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Debian's tree with a change that the kernel prints as it boots."""
    tarball = tarball_of("6.12")
    if tarball is None:
        pytest.skip("no source of 6.12: apt-get install linux-source-6.12")
    try:
        host_kernel.check_programs()
    except TestbedError as error:
        pytest.skip(str(error))
    found = tmp_path / "linux"
    found.mkdir()
    done = run(["tar", "xf", str(tarball), "--strip-components=1", "-C", str(found)])
    assert done.code == 0, done.said
    file, line = found / "init" / "main.c", 'pr_notice("%s", linux_banner);'
    text = file.read_text(encoding="utf-8")
    assert line in text
    file.write_text(text.replace(line, f'{line}\n\tpr_info("a tree that was changed today\\n");'), encoding="utf-8")
    return found


def test_a_kernel_of_one_s_own(rack: Machines, tree: Path) -> None:
    where = ("--testbed", str(rack.inventory))
    menu = rack.ssh("alpha", "cat /boot/grub/grubenv; ls /boot /etc/default/grub.d /lib/modules").said
    install = ("kernel", "install", "mine", "--from", str(tree), "--config", str(CONFIG), *where)
    first = rack.testctl(*install)
    assert first.code == 0, first.said
    second = rack.testctl(*install)
    assert "as built before" in second.said
    assert second.said.count("nothing to change") == 2
    listed = rack.testctl("kernel", "list", *where)
    assert listed.said.count("-testctl-mine") == 2
    rack.ends(rack.begin(rack.plan(SWEEP)), 0)
    kernels = {point["tuples"][0][2]: rack.outcome(point)["kernel"] for point in rack.points()}
    assert kernels["mine"].endswith("-testctl-mine")
    assert "testctl" not in kernels["6.12"]
    removed = rack.testctl("kernel", "remove", "mine", *where)
    assert removed.code == 0, removed.said
    assert rack.ssh("alpha", "cat /boot/grub/grubenv; ls /boot /etc/default/grub.d /lib/modules").said == menu
