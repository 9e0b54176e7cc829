# SPDX-License-Identifier: Apache-2.0
"""The compiler: the same object everywhere, the check that one is current, and the errors of a missing tool."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from p4c_ebpf.__main__ import main
from p4c_ebpf.compile import compiled, stale
from p4c_ebpf.errors import ProgramError, ToolError

from plugins.p4c_ebpf.tests.program_files import BUILD, PROGRAMS

L2 = PROGRAMS / "l2.json"
CLANG = "clang version 14."
"""That of the committed object."""


def test_the_object_is_the_same_in_each_place(tmp_path: Path) -> None:
    first, second = (compiled(L2, tmp_path / name) for name in ("one", "two"))
    assert first.layout == second.layout
    made = first.object.read_bytes()
    assert made.startswith(b"\x7fELF")
    assert made == second.object.read_bytes()
    for path in (tmp_path, Path(__file__).parents[3]):
        assert str(path).encode() not in made
    assert compiled(L2, tmp_path / "harness", harness=True).layout.sources != first.layout.sources


def test_the_committed_object_is_what_clang_makes(tmp_path: Path) -> None:
    """`make gen` changes nothing."""
    version = subprocess.run(["clang", "--version"], capture_output=True, text=True, check=True).stdout
    if CLANG not in version:
        pytest.skip(f"want {CLANG}")
    made = compiled(BUILD / "testbed.json", tmp_path)
    for path in (made.object, tmp_path / "layout.json"):
        assert path.read_bytes() == (BUILD / path.name).read_bytes()


def test_what_is_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copy(L2, tmp_path))
    assert main(["compile", str(copy), str(tmp_path)]) == 0
    assert main(["check", str(copy), str(tmp_path)]) == 0
    with (tmp_path / "l2.o").open("ab") as file:
        file.write(b"more")
    assert main(["check", str(copy), str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"stale: {tmp_path}/l2.o: not the object of {tmp_path}/layout.json\n"
    shutil.copyfile(L2.with_name("vlan.json"), copy)
    assert stale(copy, tmp_path) == f"{tmp_path}/layout.json: not that of {copy}"
    (tmp_path / "l2.o").unlink()
    with pytest.raises(ProgramError, match=r"l2\.o: can't be read: No such file"):
        stale(copy, tmp_path)


def test_no_clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"^clang is not installed: .*\(Debian: apt install clang\)$"):
        compiled(L2, tmp_path)
    assert main(["check", str(BUILD / "testbed.json"), str(BUILD)]) == 0, "needs no clang"


def test_no_program(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"none.json: can't be read: "):
        compiled(tmp_path / "none.json", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("translate", "{tmp}"), "{tmp}: can't be read: "),
        (("translate", "{tmp}/bytes"), "{tmp}/bytes: can't be read: "),
        (("compile", str(L2), "{tmp}/bytes"), "p4c_ebpf: [Errno 17] File exists: '{tmp}/bytes'"),
        (("behind", str(L2), "{tmp}", "{tmp}/none"), "{tmp}/none: can't be read: No such file or directory"),
        (("behind", str(L2), "{tmp}", "{tmp}/bytes"), "{tmp}/bytes: want the layout.json of a compiled program; got"),
        (("behind", str(L2), "{tmp}", str(L2)), f"{L2}: want the layout.json of a compiled program; got"),
    ],
)
def test_files_that_can_t_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert main([word.format(tmp=tmp_path) for word in arguments]) in (2, 3)
    error = capsys.readouterr().err
    assert error.startswith(said.format(tmp=tmp_path))
    assert error.count("\n") == 1
