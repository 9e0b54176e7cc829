# SPDX-License-Identifier: Apache-2.0
"""The compiler's cache, and the errors of a missing tool, a wrong object and the verifier."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_agent.bpf import libbpf
from testctl_agent.p4c_ebpf import compile as compiler
from testctl_agent.p4c_ebpf.layout import NEEDED
from testctl_agent.spec.errors import ProgramError, TestbedError, Unavailable
from testctl_agent.system import toolchain
from testctl_agent.system.subprocesses import run

PROGRAMS = Path(__file__).parent / "programs"
REFUSED = """
#include "helpers.h"
SEC("tc") int too_far(struct __sk_buff *skb) { return *(int *)(long)skb->data; }
char _license[] SEC("license") = "GPL";
"""


def test_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path))
    first = compiler.compiled(PROGRAMS / "l2.json")
    assert first.object.read_bytes().startswith(b"\x7fELF")
    assert first.object.parent.parent == tmp_path / "p4"
    written = first.object.stat().st_mtime_ns
    second = compiler.compiled(PROGRAMS / "l2.json")
    assert second == first
    assert second.object.stat().st_mtime_ns == written
    assert compiler.compiled(PROGRAMS / "l2.json", harness=True).object != first.object
    copy = tmp_path / "l2.json"
    copy.write_text((PROGRAMS / "l2.json").read_text() + "\n")
    assert compiler.compiled(copy).object != first.object
    assert {one.name for one in (tmp_path / "p4").iterdir()} == {
        one.parent.name for one in (tmp_path / "p4").glob("*/layout.json")
    }


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TESTCTL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiler.compiled(PROGRAMS / "l2.json").object.parent.parent == tmp_path / "testctl" / "p4"


def test_no_clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    toolchain.compiler.cache_clear()
    with pytest.raises(Unavailable, match=r"^clang is not installed: .*\(Debian: apt install clang\)$"):
        compiler.compiled(PROGRAMS / "l2.json")
    toolchain.compiler.cache_clear()


def test_no_program(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"none.json: can't be read: No such file or directory$"):
        compiler.compiled(tmp_path / "none.json")


def test_no_object(tmp_path: Path) -> None:
    (tmp_path / "x.o").write_text("nothing")
    with pytest.raises(TestbedError, match=r"x.o: can't be opened as a BPF object: "):
        libbpf.Object(tmp_path / "x.o")


@pytest.mark.parametrize(
    ("name", "got"), [(".rodata.nothing", "none"), (NEEDED, "one of {needed_bytes}")], ids=["no section", "a size"]
)
def test_constants_that_it_has_not(name: str, got: str) -> None:
    made = compiler.compiled(PROGRAMS / "l2.json")
    said = got.format(needed_bytes=made.layout.needed_bytes)
    with pytest.raises(TestbedError, match=rf"program\.o: want a section {name} of 1 bytes; got {said}$"):
        libbpf.Object(made.object, {name: b"\1"})


def test_entries_of_a_map_that_it_has_not() -> None:
    made = compiler.compiled(PROGRAMS / "l2.json")
    with pytest.raises(TestbedError, match=r"program\.o: want a map nothing for 4096 entries; got none$"):
        libbpf.Object(made.object, None, {"nothing": 4096})


@pytest.mark.root(beside=True)
def test_the_verifiers_last_words(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(REFUSED)
    run([compiler._clang()[0], *compiler._FLAGS, f"-I{compiler._RUNTIME}", "-c", str(tmp_path / "x.c"), "-o",
         str(tmp_path / "x.o")])  # fmt: skip
    with pytest.raises(TestbedError) as caught:
        libbpf.Object(tmp_path / "x.o")
    said = str(caught.value)
    assert "x.o: the kernel refuses it: " in said
    assert "invalid access to packet" in said


@pytest.mark.root(beside=True)
def test_maps() -> None:
    loaded = libbpf.Object(compiler.compiled(PROGRAMS / "registers.json").object)
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
    smaller = libbpf.Object(compiler.compiled(PROGRAMS / "registers.json").object, None, {"groups": 7})
    assert smaller.map("groups").entries == 7
    smaller.close()
