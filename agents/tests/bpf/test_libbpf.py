# SPDX-License-Identifier: Apache-2.0
"""Objects in the kernel: the switch's committed one, and the errors of wrong ones and of the verifier."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from testctl_agent.bpf import libbpf
from testctl_agent.spec.errors import TestbedError
from testctl_agent.switch import testbed_object
from testctl_agent.switch.layout import NEEDED
from testctl_agent.system.toolchain import BPF_FLAGS

REFUSED = """
#include <linux/bpf.h>
__attribute__((section("tc"), used)) int too_far(struct __sk_buff *skb) { return *(int *)(long)skb->data; }
__attribute__((section("license"), used)) char _license[] = "GPL";
"""


def test_no_object(tmp_path: Path) -> None:
    (tmp_path / "x.o").write_text("nothing")
    with pytest.raises(TestbedError, match=r"x.o: can't be opened as a BPF object: "):
        libbpf.Object(tmp_path / "x.o")


@pytest.mark.parametrize(
    ("name", "got"), [(".rodata.nothing", "none"), (NEEDED, "one of {needed_bytes}")], ids=["no section", "a size"]
)
def test_constants_that_it_has_not(name: str, got: str) -> None:
    said = got.format(needed_bytes=testbed_object.layout().needed_bytes)
    with pytest.raises(TestbedError, match=rf"testbed\.o: want a section {name} of 1 bytes; got {said}$"):
        libbpf.Object(testbed_object.path(), {name: b"\1"})


def test_entries_of_a_map_that_it_has_not() -> None:
    with pytest.raises(TestbedError, match=r"testbed\.o: want a map nothing for 4096 entries; got none$"):
        libbpf.Object(testbed_object.path(), None, {"nothing": 4096})


@pytest.mark.root
def test_the_verifiers_last_words(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(REFUSED)
    subprocess.run(["clang", *BPF_FLAGS, "-c", "x.c", "-o", "x.o"], cwd=tmp_path, check=True)
    with pytest.raises(TestbedError) as caught:
        libbpf.Object(tmp_path / "x.o")
    said = str(caught.value)
    assert "x.o: the kernel refuses it: " in said
    assert "invalid access to packet" in said


@pytest.mark.root
def test_maps() -> None:
    loaded = libbpf.Object(testbed_object.path())
    with pytest.raises(TestbedError, match="no BPF map none; there are "):
        loaded.map("none")
    with pytest.raises(TestbedError, match="no BPF program none"):
        loaded.program("none")
    groups = loaded.map("groups")
    key, value = bytes(4), bytes(groups.value_bytes)
    assert groups.lookup(key) is None
    groups.update(key, value)
    assert (groups.lookup(key), list(groups.keys())) == (value, [key])
    assert (groups.delete(key), groups.delete(key)) == (True, False)
    with pytest.raises(TestbedError, match="BPF map groups: want a key of 4 bytes; got 3"):
        groups.lookup(bytes(3))
    with pytest.raises(TestbedError, match="BPF map groups: want a value of "):
        groups.update(key, b"")
    for number in range(groups.entries):
        groups.update(number.to_bytes(4, "little"), value)
    with pytest.raises(TestbedError, match="BPF map groups: full: 1024 entries"):
        groups.update((9999).to_bytes(4, "little"), value)
    loaded.close()
    loaded.close()
    smaller = libbpf.Object(testbed_object.path(), None, {"groups": 7})
    assert smaller.map("groups").entries == 7
    smaller.close()
