# SPDX-License-Identifier: Apache-2.0
"""Variants of a kernel: a name and a key of their own, the same source; a change of one concerns no other kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from testctl.lab import inputs, kernel
from testctl.lab.inputs import Inputs
from testctl.lab.kernel import Kernel, lacking
from testctl.lab.source import VARIANTS, KernelSource, find, split_variant
from testctl.lab.workplace import Workplace
from testctl.replay.variants import relative_to, with_tracepoints
from testctl.system import checkout
from testctl_agent.spec.errors import TestbedError

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("name", "parts"),
    [("6.12-trace", ("6.12", "trace")), ("6.12-debug", ("6.12", "debug")), ("6.12", ("6.12", "")),
     ("mine-trace", ("mine", "trace")), ("6.12-other", ("6.12-other", "")), ("trace", ("trace", "")),
     ("-trace", ("-trace", ""))],
)  # fmt: skip
def test_names(name: str, parts: tuple[str, str]) -> None:
    assert split_variant(name) == parts


def test_each_has_its_files(tmp_path: Path) -> None:
    tarball = tmp_path / "linux.tar.xz"
    tarball.write_bytes(b"a source")
    plain, *others = (Inputs.of(KernelSource("x", tarball, variant=variant)) for variant in ("", *VARIANTS))
    assert not [name for name in plain.files if "variants" in name]
    for variant, mine in zip(VARIANTS, others, strict=True):
        assert [path.is_file() for path in inputs.variant_files(variant)] == [True] * len(VARIANTS[variant])
        own = {f"lab/kernel/variants/{name}.config" for name in VARIANTS[variant]}
        own |= {f"lab/kernel/variants/{path.name}" for path in inputs.variant_sources(variant)}
        own |= {"lab/kernel/variants/coverage.py"} if variant == "coverage" else set()  # which files are counted
        assert mine.files.keys() - plain.files.keys() == own
        assert mine.key != plain.key
        assert mine.differences(plain, ())
        assert plain.differences(mine, ()) == [f"{name} is gone" for name in sorted(own)]
    assert [path.name for path in inputs.variant_sources("debug")] == ["debug_fault.c"]
    assert not inputs.variant_sources("trace")


def test_a_change_of_one_concerns_no_other_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(checkout.lab(), tmp_path / "lab")
    monkeypatch.setattr(checkout, "lab", lambda: tmp_path / "lab")
    tarball = tmp_path / "linux.tar.xz"
    tarball.write_bytes(b"a source")
    sources = [KernelSource("x", tarball, variant=variant) for variant in ("", "trace", "debug")]
    for name, more, same in (
        ("trace.config", "CONFIG_MORE=y\n", [True, False, False]),
        ("debug.config", "CONFIG_MORE=y\n", [True, True, False]),
        ("debug_fault.c", "/* more */\n", [True, True, False]),
        ("debug_other.c", "/* new */\n", [True, True, False]),
    ):
        before = [Inputs.of(source).key for source in sources]
        with (tmp_path / "lab" / "kernel" / "variants" / name).open("a") as file:
            file.write(more)
        after = [Inputs.of(source).key for source in sources]
        assert [a == b for a, b in zip(before, after, strict=True)] == same, name


def test_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path))
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "linux-source-9.9.tar.xz").touch()
    found = find("9.9-trace")
    assert (found.name, found.origin.name, found.variant) == ("9.9-trace", "linux-source-9.9.tar.xz", "trace")
    with pytest.raises(TestbedError, match=r"kernel 9\.8-trace: no source at .*linux-source-9\.8\.tar\.xz"):
        find("9.8-trace")
    (tmp_path / "tree" / "arch" / "um").mkdir(parents=True)
    tree = find("mine-trace", tmp_path / "tree", "", "trace")
    assert (tree.origin, tree.variant) == (tmp_path / "tree", "trace")


def test_objects_of_a_tree_lie_apart(tmp_path: Path) -> None:
    plain, debug = Workplace(tmp_path), Workplace(tmp_path, "trace")
    assert plain.source == debug.source
    assert plain.objects != debug.objects
    assert plain.configured != debug.configured


def test_sources_of_a_variant_are_built_into_it_alone(tmp_path: Path) -> None:
    """The copy of a user's tree is one for all variants."""
    work, debug = Workplace(tmp_path), Workplace(tmp_path, "debug")
    for name in ("net/ipv4", "arch/um"):
        (tmp_path / "source" / name).mkdir(parents=True)
    home = tmp_path / "source" / "net" / "ipv4" / "testctl"
    for place, variant, there in ((work, "", False), (debug, "debug", True), (work, "", False)):
        kernel.put_sources(place, variant)
        assert (home / "lab_fault.c").is_file()
        assert [(home / name).is_file() for name in ("debug_fault.c", "Kbuild")] == [there, there]
        if there:
            assert (home / "Kbuild").read_text().splitlines() == [
                "include $(srctree)/net/ipv4/testctl/Makefile", "obj-y += debug_fault.o"
            ]  # fmt: skip


def test_what_a_tree_lacks(tmp_path: Path) -> None:
    (tmp_path / kernel.LACKING).write_text("CONFIG_UBSAN=y\n")
    assert lacking(Kernel("6.1-debug", "0" * 16, tmp_path)) == ["CONFIG_UBSAN=y"]
    assert lacking(Kernel("6.1", "0" * 16, tmp_path / "other")) == []


def test_no_kernel_with_tracepoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path))
    with pytest.raises(TestbedError, match=r"--trace: kernel mine has no tracepoints.* testctl lab build mine --trace"):
        with_tracepoints(Kernel("mine", "0" * 16, tmp_path))
    debug = Kernel("mine-trace", "0" * 16, tmp_path)
    assert with_tracepoints(debug) is debug


TRACE = """# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
          <idle>-0       [000] ..s1.    20.247037: tcp_probe: family=AF_INET src=10.0.0.1:1
            tgen-123     [000] b..1.    20.000334: tcp_send: a 1.000000: b
"""


def test_times_of_a_trace_are_those_of_records(tmp_path: Path) -> None:
    file = tmp_path / "kernel.trace"
    file.write_text(TRACE)
    relative_to(file, 20 * 10**9 + 333_333)
    first, second = file.read_text().splitlines()[3:]
    assert first == "          <idle>-0       [000] ..s1.      246.704 ms: tcp_probe: family=AF_INET src=10.0.0.1:1"
    assert second.endswith(" 0.001 ms: tcp_send: a 1.000000: b")
