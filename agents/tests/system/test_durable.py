# SPDX-License-Identifier: Apache-2.0
"""What is written for good is whole or not there; nobody renames files by other means."""

from __future__ import annotations

import ast
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from testctl_agent.system import durable

ROOT = Path(__file__).parents[3]
OWN = {
    "agents/src/testctl_agent/system/durable.py",
    "controller/src/testctl/system/temporary.py",  # a lock, which ends with its process
    "plugins/rack/src/testctl_rack/boot_once.py",  # runs alone on a host, and syncs by itself
    "plugins/rack/src/testctl_rack/mtls.py",  # raw files, which are read once, by the process that wrote them
    "controller/src/testctl/testbeds/point_runner.py",  # likewise
}


def renames(path: Path) -> Iterator[int]:
    """The lines on which a file is renamed."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        of = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        attribute, one_word = node.func.attr, len(node.args) == 1 and not node.keywords
        if of in ("os", "shutil"):
            found = attribute in ("rename", "renames", "replace", "move")
        else:  # of a Path; that of a text has two words, dataclasses.replace has keywords
            found = of != "durable" and attribute in ("rename", "replace") and one_word
        if found:
            yield node.lineno


def test_files_are_renamed_in_one_place() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for home in (ROOT / "agents", ROOT / "controller", *(ROOT / "plugins").iterdir())
        for path in sorted((home / "src").rglob("*.py"))
        if str(path.relative_to(ROOT)) not in OWN
        for line in renames(path)
    ]
    assert found == [], "use testctl_agent.system.durable, which syncs"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The order of syncs and renames, with the names of what they were about."""
    found: list[tuple[str, str]] = []
    real_sync, real_rename, real_replace = os.fsync, os.rename, os.replace

    def fsync(file: int) -> None:
        found.append(("sync", Path(os.readlink(f"/proc/self/fd/{file}")).name))
        real_sync(file)

    def rename(old: Path, new: Path) -> None:
        found.append(("rename", Path(new).name))
        real_rename(old, new)

    def replace(old: Path, new: Path) -> None:
        found.append(("rename", Path(new).name))
        real_replace(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(os, "replace", replace)
    return found


def test_content_is_synced_before_its_name_and_its_name_after(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    durable.write(tmp_path / "file", b"text")
    assert calls == [("sync", f".file.{os.getpid()}.tmp"), ("rename", "file"), ("sync", tmp_path.name)]
    calls.clear()
    new = tmp_path / "new"
    (new / "below").mkdir(parents=True)
    (new / "below" / "one").touch()
    (new / "two").touch()
    (new / "link").symlink_to("nowhere")
    durable.publish(new, tmp_path / "final")
    assert calls == [
        ("sync", "one"), ("sync", "below"), ("sync", "two"), ("sync", "new"), ("rename", "final"),
        ("sync", tmp_path.name),
    ]  # fmt: skip


def test_a_file_has_its_mode_and_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    (tmp_path / f".key.{os.getpid()}.tmp").write_text("left by a process of that number")
    durable.write(path, b"new", 0o600)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o600)
    assert [one.name for one in tmp_path.iterdir()] == ["key"]


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="Input/output error"):
            durable.write(path, b"new")
        with pytest.raises(OSError, match="Input/output error"):
            durable.rename(path, tmp_path / "renamed")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "old")]


def test_a_directory_that_can_not_be_synced_is_left_to_its_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "fsync", fails)
    durable.sync(tmp_path)
    with pytest.raises(OSError, match="Invalid argument"):
        durable.sync(tmp_path / "file")


def test_directories_are_made_with_their_parents(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    durable.make_directory(tmp_path / "a" / "b", 0o700)
    assert calls == [("sync", tmp_path.name), ("sync", "a")]
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    durable.make_directory(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        durable.make_directory(tmp_path / "file")


def test_a_link_is_replaced_at_once(tmp_path: Path) -> None:
    for target in ("one", "two"):
        durable.link(tmp_path / "latest", target)
        assert os.readlink(tmp_path / "latest") == target
    assert [one.name for one in tmp_path.iterdir()] == ["latest"]
