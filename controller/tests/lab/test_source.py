# SPDX-License-Identifier: Apache-2.0
"""A tree of the user's, or a revision of it, is copied and never changed; the next copy takes what changed."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from testctl.lab import git_tree, workplace
from testctl.lab.source import KernelSource, find, split_revision
from testctl.lab.tree_files import Copy, listing
from testctl_agent.spec.errors import PlanError, TestbedError

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n"
FILES = {"Makefile": MAKEFILE, "arch/um/Kconfig": "config UML\n", "net/tcp_input.c": "one\n", "net/Makefile": "obj-y\n"}


def git(tree: Path, *words: str) -> str:
    person = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(["git", "-C", tree, *person, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "linux"
    for name, text in FILES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


@pytest.fixture
def repository(tree: Path) -> Path:
    """Two commits; the second changes one file, adds one and removes one."""
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "first")
    git(tree, "tag", "v1")
    (tree / "net/tcp_input.c").write_text("two\n")
    (tree / "net/new.c").write_text("new\n")
    (tree / "net/Makefile").unlink()
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "second")
    return tree


def bring(source: KernelSource) -> tuple[workplace.Workplace, list[str] | None]:
    with workplace.of(source, Path("unused")) as work:
        changed = work.bring(source)
        work.configured.write_text("as a build would")
    return work, changed


def content(where: Path) -> dict[str, str]:
    return {name: (where / name).read_text() for name in listing(where)}


def test_only_what_changed_is_copied_again(tree: Path) -> None:
    source = find("mine", tree)
    work, changed = bring(source)
    assert changed is None
    kept = {name: text for name, text in FILES.items() if name != "arch/um/Kconfig"}
    assert content(work.source) == kept, "what is edited before a build lies apart"
    assert work.pristine is not None
    assert content(work.pristine) == {"arch/um/Kconfig": FILES["arch/um/Kconfig"]}
    before = listing(work.source)
    (tree / "net/tcp_input.c").write_text("two\n")
    os.utime(tree / "Makefile", (1, 1))
    was = source.fingerprint()
    assert bring(source)[1] == ["net/tcp_input.c"]
    after = listing(work.source)
    assert [name for name in after if after[name] != before[name]] == ["net/tcp_input.c"]
    (tree / "net/tcp_input.c").write_text("three\n")
    assert source.fingerprint() != was
    (tree / "net/Makefile").unlink()
    assert bring(source)[1] == ["net/Makefile", "net/tcp_input.c"]
    assert "net/Makefile" not in listing(work.source)


def test_of_what_changed_the_compiled_files_are_named_the_last_one_first(tree: Path) -> None:
    """And a link that is what it was has not changed."""
    others = ("net/other.c", "net/tcp.h", "include/net/tcp.h", "arch/arm/a.h", "Documentation/a.rst", "net/unused.c")
    for name in others:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("one\n")
    (tree / "arch" / "arm" / "link.h").symlink_to("a.h")
    source = find("mine", tree)
    work, _ = bring(source)
    (work.objects / "net").mkdir(parents=True)
    for name in ("tcp_input.o", "other.o"):
        (work.objects / "net" / name).touch()
    for number, name in enumerate(["net/other.c", "net/tcp.h", "net/tcp_input.c", "include/net/tcp.h", *others[3:]]):
        (tree / name).write_text("two\n")
        os.utime(tree / name, (number + 1, number + 1))
    (tree / "arch" / "arm" / "link.h").unlink()
    (tree / "arch" / "arm" / "link.h").symlink_to("a.h")
    changed = bring(source)[1]
    assert changed is not None
    assert "arch/arm/link.h" not in changed
    assert work.compiled(changed) == ["include/net/tcp.h", "net/tcp_input.c", "net/tcp.h", "net/other.c"]


def test_a_copy_that_was_interrupted_is_mended_by_the_next(tree: Path, tmp_path: Path) -> None:
    copy = Copy(tmp_path / "copy", set())
    copy.update(tree)
    (copy.source / "net/tcp_input.c").write_text("half")
    (tmp_path / "copy" / "stamps.json").write_text("{")
    assert copy.update(tree) == ["net/tcp_input.c"]
    assert content(copy.source) == FILES


def test_what_a_build_left_in_the_tree_is_no_part_of_it(tree: Path) -> None:
    for name in ("net/tcp_input.o", ".config", "include/generated/autoconf.h", "arch/x86/include/generated/a.h"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("made")
    assert set(listing(tree)) == set(FILES)


def test_what_git_ignores_is_no_part_of_the_tree(repository: Path) -> None:
    (repository / ".gitignore").write_text("*.log\n")
    (repository / "a.log").touch()
    (repository / "net/mine.c").touch()
    names = set(listing(repository))
    assert "net/mine.c" in names
    assert not {name for name in names if name.startswith(".git/") or name.endswith(".log")}


def test_a_tracked_file_that_is_deleted_hides_no_other(repository: Path) -> None:
    before = set(listing(repository))
    (repository / "arch/um/Kconfig").unlink()
    assert set(listing(repository)) == before - {"arch/um/Kconfig"}


def test_revisions_of_a_tree_leave_its_checkout_alone(repository: Path) -> None:
    (repository / "net/tcp_input.c").write_text("not committed\n")
    state = git(repository, "status", "--porcelain"), git(repository, "worktree", "list"), git(repository, "show-ref")
    index = (repository / ".git/index").read_bytes()
    work, _ = bring(find("mine", repository, "v1"))
    assert (work.source / "net/tcp_input.c").read_text() == "one\n"
    changed = bring(find("mine", repository, "HEAD"))[1]
    assert changed == ["net/Makefile", "net/new.c", "net/tcp_input.c"]
    assert (work.source / "net/tcp_input.c").read_text() == "two\n"
    assert bring(find("mine", repository))[1] == ["net/tcp_input.c"]
    assert (work.source / "net/tcp_input.c").read_text() == "not committed\n"
    assert index == (repository / ".git/index").read_bytes()
    assert state == (git(repository, "status", "--porcelain"), git(repository, "worktree", "list"),
                     git(repository, "show-ref"))  # fmt: skip


def test_a_copy_in_the_cache_never_changes_the_checkout_of_a_revision(repository: Path) -> None:
    work, _ = bring(find("mine", repository, "v1"))
    (work.source / "net/tcp_input.c").unlink()
    assert (work.home / "checkout/net/tcp_input.c").read_text() == "one\n"


def test_the_same_files_are_the_same_source(repository: Path) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "third")
    first, second, third = (find("mine", repository, revision).fingerprint() for revision in ("v1", "HEAD~1", "HEAD"))
    assert first != second == third


def test_a_checkout_without_changes_is_the_source_of_its_commit(repository: Path) -> None:
    def same() -> bool:
        return find("k", repository).fingerprint() == find("k", repository, "HEAD").fingerprint()

    assert same()
    assert find("k", repository).fingerprint() != find("k", repository, "v1").fingerprint()
    (repository / "net/tcp_input.c").write_text("six\n")
    assert not same()
    git(repository, "update-index", "--assume-unchanged", "net/tcp_input.c")
    assert not same()
    git(repository, "update-index", "--no-assume-unchanged", "net/tcp_input.c")
    git(repository, "checkout", "-q", ".")
    assert same()
    (repository / "net/more.c").write_text("more\n")
    assert not same()


def test_a_checkout_without_a_commit_is_a_source(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "add", ".")
    assert len(find("k", tree).fingerprint()) == 64


def test_a_revision_is_written_below_a_directory_of_the_repository(repository: Path, tmp_path: Path) -> None:
    git_tree.write(repository / "net", git_tree.commit_id(repository, "v1"), tmp_path / "out", tmp_path / "index")
    assert content(tmp_path / "out") == {"tcp_input.c": "one\n", "Makefile": "obj-y\n"}


def test_wrong_revisions(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"want a git revision, such as v6\.12 or HEAD~3; got 'v9'"):
        find("mine", repository, "v9")
    with pytest.raises(PlanError, match="got '--all'"):
        find("mine", repository, "--all")
    git(repository, "rm", "-rq", "--cached", "arch")
    git(repository, "commit", "-qm", "no um")
    with pytest.raises(TestbedError, match="linux@HEAD is not a kernel tree: it has no arch/um"):
        find("mine", repository, "HEAD")
    bare = tmp_path / "none"
    (bare / "arch/um").mkdir(parents=True)
    with pytest.raises(TestbedError, match="not a git repository"):
        find("mine", bare, "HEAD")


def test_directory_and_revision(tmp_path: Path) -> None:
    (tmp_path / "a@b").mkdir()
    (tmp_path / "a").mkdir()
    assert split_revision(f"{tmp_path}/a@b") == (tmp_path / "a@b", "")
    assert split_revision(f"{tmp_path}/a@v6.12@{{1}}") == (tmp_path / "a", "v6.12@{1}")
    with pytest.raises(PlanError, match="want a git revision after the @; got none"):
        split_revision(f"{tmp_path}/a@")
    with pytest.raises(PlanError, match=r"want a kernel tree as DIR or DIR@REV; there is no such directory"):
        split_revision(f"{tmp_path}/c@v1")


def test_a_tarball_is_unpacked_with_what_some_kernel_is_built_from(tmp_path: Path) -> None:
    """Linux 7.3 builds drivers/iommu for User Mode Linux too."""
    kept = ["Makefile", "drivers/iommu/iommu-pages.c", "drivers/iommu/iommu-pages.h", "drivers/net/tun.c",
            "drivers/net/netdevsim/Kconfig", "drivers/base/core.c", "arch/um/kernel/um_arch.c", "arch/x86/um/ldt.c",
            "sound/Kconfig"]  # fmt: skip
    left_out = ["drivers/gpu/drm/drm_drv.c", "drivers/infiniband/core/cm.c", "drivers/net/ethernet/intel/e1000.c",
                "arch/arm/kernel/setup.c", "sound/core/init.c", "tools/perf/perf.c"]  # fmt: skip
    top = tmp_path / "linux-source-7.3"
    for name in (*kept, *left_out):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()
    subprocess.run(["tar", "cJf", "linux-source-7.3.tar.xz", top.name], cwd=tmp_path, check=True)
    KernelSource("7.3", tmp_path / "linux-source-7.3.tar.xz").unpack(tmp_path / "tree")
    assert sorted(map(str, _files(tmp_path / "tree"))) == sorted(kept)


def test_a_damaged_list_of_digests_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path))
    (tmp_path / "digests.json").write_text("[]")
    (tmp_path / "a.tar.xz").write_bytes(b"a")
    assert KernelSource("a", tmp_path / "a.tar.xz").fingerprint() == hashlib.sha256(b"a").hexdigest()


def _files(tree: Path) -> list[Path]:
    return [path.relative_to(tree) for path in tree.rglob("*") if path.is_file()]
