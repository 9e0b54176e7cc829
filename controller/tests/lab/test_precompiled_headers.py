# SPDX-License-Identifier: Apache-2.0
"""The compiler of a kernel's first build reads the headers that most files include once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from testctl.system.checkout import lab

NAME = 'const char *name = KBUILD_MODNAME ": " SHARED;\n'
OWN = f'#ifndef SHARED\n#define SHARED "its own"\n#endif\n{NAME}'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The script, with a header of two lines in place of the kernel's."""
    for name in ("precompiled.sh", "precompiled_names.h"):
        shutil.copy(lab() / "kernel" / name, tmp_path)
    (tmp_path / "precompiled.h").write_text('#define SHARED "shared"\n#define pr_fmt(text) text\n', encoding="ascii")
    return tmp_path


def compiled(tree: Path, name: str, text: str = NAME) -> tuple[str, bytes]:
    """What the compiler printed, and the object."""
    source, made = tree / name, tree / "made.o"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(text, encoding="ascii")
    names = [f'-DKBUILD_{part}="{source.stem}"' for part in ("BASENAME", "MODNAME", "MODFILE")]
    argv = ["sh", str(tree / "precompiled.sh"), "gcc", "-Wp,-MMD,made.d", "-nostdinc", "-D__KERNEL__", "-O2", *names]
    done = subprocess.run(
        [*argv, f"-D__KBUILD_MODNAME=kmod_{source.stem}", "-c", "-o", str(made), str(source)],
        cwd=tree, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stderr, made.read_bytes()


def test_headers_are_read_as_compiled_and_each_file_has_its_own_name(tree: Path) -> None:
    for name in ("kernel/fork.c", "net/ipv4/tcp.c"):
        printed, made = compiled(tree, name, f"#define pr_fmt(text) KBUILD_MODNAME text\n{NAME}")
        assert f"{Path(name).stem}: shared\0".encode() in made
        assert printed == ""
        (tree / "precompiled.h").unlink(missing_ok=True)  # it is not read again


@pytest.mark.parametrize("name", ["init/main.c", "lib/string.c", "arch/x86/um/vdso/um_vdso.c"])
def test_a_file_that_changes_the_headers_reads_them_itself(tree: Path, name: str) -> None:
    compiled(tree, "kernel/fork.c")
    _, made = compiled(tree, name, OWN)
    assert f"{Path(name).stem}: its own\0".encode() in made


def test_a_file_before_them_is_compiled_without(tree: Path) -> None:
    """make compiles scripts/mod/empty.c before it has made all headers."""
    _, made = compiled(tree, "scripts/mod/empty.c", OWN)
    assert b"empty: its own\0" in made


def test_a_file_that_uses_a_name_of_theirs_reads_its_own(tree: Path) -> None:
    """lib/sort.c has functions with a parameter swap, which is a macro."""
    compiled(tree, "kernel/fork.c")
    assert compiled(tree, "lib/sort.c", "int pr_fmt(int one, int two) { return one + two; }\n")[0] == ""


def test_own_files_keep_their_warnings(tree: Path) -> None:
    compiled(tree, "kernel/fork.c")
    wrong = "#define pr_fmt(text) 1\nint twice;\n"
    assert "redefined" in compiled(tree, "net/ipv4/testctl/lab_port.c", wrong)[0]
    assert "redefined" not in compiled(tree, "net/ipv4/tcp.c", wrong)[0]
