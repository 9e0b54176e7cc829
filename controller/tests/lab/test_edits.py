# SPDX-License-Identifier: Apache-2.0
"""The edits of a kernel's tree: each is made where it is for, or says why it can't be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from testctl.lab.edits import apply_edits, load_edits, version_of
from testctl_agent.spec.errors import TestbedError

ROOT = Path(__file__).parents[3]
EDITS = ROOT / "lab/kernel/edits.yaml"


def tree(where: Path, version: str = "6.12.117", **files: str) -> Path:
    major, minor, last = version.split(".")
    where.mkdir(exist_ok=True)
    (where / "Makefile").write_text(f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = {last}\nEXTRAVERSION =\n")
    for name, text in files.items():
        (where / name).write_text(text)
    return where


def edits(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "edits.yaml"
    path.write_text(text)
    return path


CLOCK = '- {file: clock, when: ">=6.1 <6.13", find: tick 256, replace: tick 1, why: a timer fires in time, '
CLOCK += "otherwise: since 6.13 it does}\n"
LINE = '- {file: list, when: ">=6.1", append: obj-y += testctl/, why: builds lab/cc in}\n'


def test_an_edit_is_made_in_its_versions_alone(tmp_path: Path) -> None:
    yaml = edits(tmp_path, CLOCK + LINE)
    for version, text in (("6.1.0", "tick 1\n"), ("6.12.117", "tick 1\n"), ("6.13.0", "tick 256\n")):
        made = tree(tmp_path / version, version, clock="tick 256\n", list="obj-y += ipv4/\n")
        apply_edits(yaml, made)
        assert (made / "clock").read_text() == text
        assert (made / "list").read_text() == "obj-y += ipv4/\nobj-y += testctl/\n"


def test_an_edit_whose_text_is_not_there_is_an_error(tmp_path: Path) -> None:
    made = tree(tmp_path / "tree", clock="tick 512\n")
    words = (
        "kernel tree 6.12.117: clock: want the text 'tick 256', which is not there; "
        "lab/kernel/edits.yaml is to change it in versions >=6.1 <6.13: a timer fires in time"
    )
    with pytest.raises(TestbedError, match=f"^{re.escape(words)}$"):
        apply_edits(edits(tmp_path, CLOCK), made)


@pytest.mark.parametrize("yaml", [CLOCK, LINE])
def test_an_edit_never_makes_a_file(tmp_path: Path, yaml: str) -> None:
    made = tree(tmp_path / "tree")
    with pytest.raises(TestbedError, match=r"kernel tree 6\.12\.117: (clock|list): no such file; lab/kernel/edits"):
        apply_edits(edits(tmp_path, yaml), made)
    assert [path.name for path in made.iterdir()] == ["Makefile"]


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        ("- {file: a, find: x, replace: y, why: w}", "edit 1: want file, when, why, and append or find and replace"),
        ('- {file: a, when: "6.12", append: x, why: w}', "edit 1: want when as >=6.1 or >=6.1 <6.13; got '6.12'"),
        ('- {file: a, when: ">=6.1", find: x, why: w}', "edit 1: want file, when, why, and append or find"),
    ],
)
def test_an_edit_that_does_not_say_what_it_is_for(tmp_path: Path, yaml: str, words: str) -> None:
    with pytest.raises(TestbedError, match=re.escape(words)):
        load_edits(edits(tmp_path, yaml))


def test_no_kernel_tree(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n")
    with pytest.raises(TestbedError, match="this is no kernel tree"):
        version_of(tmp_path)


def test_an_edit_for_some_versions_says_why_others_do_without(tmp_path: Path) -> None:
    alone = '- {file: a, when: ">=6.1 <6.13", append: x, why: w}\n'
    with pytest.raises(TestbedError, match=r"edit 1: want otherwise, why versions beyond >=6\.1 <6\.13 do not need"):
        load_edits(edits(tmp_path, alone))
    made = tree(tmp_path / "tree", "6.13.0", clock="tick 256\n", list="obj-y += ipv4/\n")
    assert apply_edits(edits(tmp_path, CLOCK + LINE), made) == [
        "clock: not changed, is for >=6.1 <6.13: since 6.13 it does",
        "list: changed: builds lab/cc in",
    ]


def test_edits_of_a_tree_that_is_kept_begin_from_its_pristine_files(tmp_path: Path) -> None:
    yaml = edits(tmp_path, CLOCK + LINE)
    pristine = tree(tmp_path / "pristine", clock="tick 256\n", list="obj-y += ipv4/\n")
    kept = tree(tmp_path / "kept")
    apply_edits(yaml, kept, pristine)
    times = {name: (kept / name).stat().st_mtime_ns for name in ("clock", "list")}
    apply_edits(yaml, kept, pristine)
    assert (kept / "list").read_text() == "obj-y += ipv4/\nobj-y += testctl/\n"
    assert {name: (kept / name).stat().st_mtime_ns for name in times} == times, "make would compile it again"


@pytest.mark.parametrize("version", [(6, 1, 192), (6, 12, 117), (6, 17, 0), (6, 18, 0), (7, 2, 13), (7, 3, 4)])
def test_the_ring_of_a_capture_is_set_once_in_every_version(version: tuple[int, ...]) -> None:
    """That each edit can be made is seen whenever a kernel is built: one that can't be is an error."""
    mine = [edit for edit in load_edits(EDITS) if edit.file == "net/packet/af_packet.c" and edit.is_for(version)]
    assert len(mine) == 1
