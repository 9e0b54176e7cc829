# SPDX-License-Identifier: Apache-2.0
"""Which built kernel serves which plan, with a copy of lab/ and a cache of kernels without content."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from testctl.cli.main import app
from testctl.lab import cc, kernel, source
from testctl.lab.built import built, kernel_for
from testctl.lab.inputs import Inputs, needed
from testctl.lab.kernel_ccs import ccs_of
from testctl.plan import load_plan
from testctl.system import checkout
from testctl_agent.spec.errors import TestbedError

ROOT = Path(__file__).parents[3]
NAME = "6.12"


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for what in ("lab", "agents/tests/cc"):
        shutil.copytree(ROOT / what, tmp_path / what, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / f"linux-source-{NAME}.tar.xz").write_bytes(b"the kernel's sources")
    monkeypatch.setattr(source, "DEBIAN_SOURCES", tmp_path / "src")
    monkeypatch.setenv("TESTCTL_ROOT", str(tmp_path))
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    checkout.root.cache_clear()
    yield tmp_path
    checkout.root.cache_clear()


def build(name: str = NAME) -> kernel.Kernel:
    """What a build leaves, without a build."""
    inputs = Inputs.of(source.find(name))
    made = kernel.locate(name, inputs)
    made.directory.mkdir(parents=True)
    made.binary.write_bytes(b"")
    (made.directory / kernel.INPUTS).write_text(inputs.to_json())
    return made


def change(path: Path) -> None:
    path.write_text(path.read_text() + "\n/* changed */\n")


def test_without_a_compiler_a_kernel_of_any_fits(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = build()
    monkeypatch.setenv("PATH", str(copied))
    assert kernel_for(NAME, {"cubic"}) == made
    change(copied / "lab" / "kernel" / "fragment.config")
    with pytest.raises(TestbedError, match=r"is to be built again: lab/kernel/fragment\.config changed"):
        kernel_for(NAME, {"cubic"})


def test_a_new_congestion_control_leaves_other_plans_their_kernel(copied: Path) -> None:
    made = build()
    cc.create("mine")
    assert kernel_for(NAME, {"cubic", "areno"}) == made
    words = "kernel 6.12 is to be built again: lab/cc/tcp_mine.c is new; build it with: testctl lab build 6.12"
    with pytest.raises(TestbedError, match=f"^{re.escape(words)}$"):
        kernel_for(NAME, {"cubic", "mine"})
    again = build()
    assert again.key != made.key
    assert kernel_for(NAME, {"mine"}) == kernel_for(NAME, {"cubic"}) == again


def test_a_changed_congestion_control_is_built_for_those_who_use_it(copied: Path) -> None:
    made = build()
    change(copied / "lab/cc/tcp_areno.c")
    assert kernel_for(NAME, {"dctcp_bug"}) == made
    with pytest.raises(TestbedError, match=r"lab/cc/tcp_areno\.c changed"):
        kernel_for(NAME, {"areno"})
    (copied / "lab/cc/tcp_areno.c").unlink()
    with pytest.raises(TestbedError, match=r"lab/cc/tcp_areno\.c is gone"):
        kernel_for(NAME, {"areno"})


def test_what_a_congestion_control_includes_is_part_of_it(copied: Path) -> None:
    made = build()
    change(copied / "lab/cc/growth_cubic.h")
    assert kernel_for(NAME, {"reno_prr"}) == made
    with pytest.raises(TestbedError, match=r"lab/cc/growth_cubic\.h changed"):
        kernel_for(NAME, {"cubic_prr"})


@pytest.mark.parametrize("file", ["lab/kernel/lab_random.c", "lab/kernel/fragment.config", "lab/cc/testctl_cc.h"])
def test_what_all_kernels_are_built_from_is_everybodys(copied: Path, file: str) -> None:
    build()
    change(copied / file)
    with pytest.raises(TestbedError, match=rf"{re.escape(file)} changed"):
        kernel_for(NAME, {"cubic"})


def test_other_sources_are_another_kernel(copied: Path) -> None:
    build()
    (copied / "src" / f"linux-source-{NAME}.tar.xz").write_bytes(b"newer sources")
    with pytest.raises(TestbedError, match="the kernel's sources are others"):
        kernel_for(NAME)
    assert built(NAME) is None


def test_none_is_built(copied: Path) -> None:
    words = f"kernel 6.12 is not built: there is none in {copied}/cache/kernels; build it with: testctl lab build"
    with pytest.raises(TestbedError, match=re.escape(words)):
        kernel_for(NAME)


def test_all_kernels_that_serve_a_plan_are_printed(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copied / "src" / "linux-source-6.1.tar.xz").write_bytes(b"of another")
    made = {name: build(name).binary for name in ("6.1", "6.12")}
    plan = copied / "plan.yaml"
    plan.write_text(
        "topology: pair\nflows: {bulk: sender -> receiver}\n"
        'tuples:\n  - [hosts, kernel, ["6.1", "6.12"]]\n  - [bulk, duration, 1s]\n'
    )
    app(["lab", "build", "--for", str(plan)], standalone_mode=False)
    assert capsys.readouterr().out.splitlines() == [f"kernel {name}: {binary}" for name, binary in made.items()]


def test_an_unknown_kernel_is_answered_with_those_there_are(copied: Path) -> None:
    build()
    with pytest.raises(TestbedError, match=r"kernel nosuch: no source at .*; built are: 6\.12 \(in .*/cache/kernels\)"):
        kernel_for("nosuch")


def test_a_kernel_of_the_users_is_asked_for_its_congestion_controls_alone(copied: Path) -> None:
    made = build()
    named = made.directory.with_name(f"theirs-{made.key}")
    made.directory.rename(named)
    kernel.remember(kernel.Kernel("theirs", made.key, named))
    cc.create("mine")
    change(copied / "lab/kernel/lab_random.c")
    assert kernel_for("theirs", {"areno"}).directory == named
    with pytest.raises(TestbedError, match=r"tcp_mine\.c is new; build it with: testctl lab build theirs --source DIR"):
        kernel_for("theirs", {"mine"})


def test_what_is_needed() -> None:
    always = needed(())
    assert {"lab/kernel/edits.yaml", "lab/kernel/tcp_event.h", "lab/cc/testctl_cc.h"} <= always
    assert needed({"cubic_prr", "bbr"}) - always == {
        "lab/cc/tcp_cubic_prr.c", "lab/cc/growth_cubic.h", "lab/cc/recovery_prr.h",
    }  # fmt: skip


def test_the_congestion_controls_of_a_plan(tmp_path: Path) -> None:
    plan = tmp_path / "two.yaml"
    plan.write_text(
        "topology: pair\nflows: {bulk: sender -> receiver}\n"
        "tuples:\n  - [hosts, cc, [areno, cubic]]\n  - [bulk, cc, reno_prr]\n  - [bulk, duration, 1s]\n"
    )
    assert ccs_of(load_plan(plan, metrics={}).points) == {"areno", "cubic", "reno_prr"}
