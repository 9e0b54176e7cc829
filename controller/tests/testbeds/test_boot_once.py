# SPDX-License-Identifier: Apache-2.0
"""What a host does to boot another kernel once: GRUB's menu as Debian 12 writes it, and the files that are written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from testctl.testbeds import boot_once

MENU = (Path(__file__).parent / "fixtures" / "grub.cfg").read_text(encoding="utf-8")
NEW, OLD = "6.12.117+deb12-amd64", "6.1.0-56-amd64"
EVIL = (" init=/tmp/x", "\n}\nmenuentry 'x' {", "'", '"', ";", "$x", "{{ 7 * 7 }}", "\x00", "\t", "é")
"""Ends of words that would be more than a word to GRUB or to Ansible."""


class Host:
    """/boot/grub and the programs of a host; what they were asked."""

    def __init__(self, grub: Path) -> None:
        self.grub = grub
        self.asked: list[tuple[str, ...]] = []
        self.next = ""
        self.layers = ""
        (grub / "grub.cfg").write_text(MENU, encoding="utf-8")

    def output(self, *argv: str) -> str:
        self.asked.append(argv)
        match argv:
            case ("grub-editenv", _, "list"):
                return f"saved_entry=x\nnext_entry={self.next}\n" if self.next else "saved_entry=x"
            case ("grub-editenv", _, "unset", "next_entry"):
                self.next = ""
            case ("grub-reboot", entry):
                self.next = entry
            case ("grub-probe", "--target=abstraction", _):
                return self.layers
            case ("grub-probe", *_):
                return "ext2"
        return ""

    def rebooted(self) -> bool:
        return any(argv[0] == "systemd-run" for argv in self.asked)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    found = Host(tmp_path)
    monkeypatch.setattr(boot_once, "GRUB", tmp_path)
    monkeypatch.setattr(boot_once, "_output", found.output)
    return found


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    boot_once.main(list(words))
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_kernels_are_those_of_the_menu_newest_first(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "list")["kernels"] == [NEW, OLD]


def test_an_entry_of_one_boot(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy of the menu's entry, of this kernel alone; the menu stays as it is."""
    assert said(capsys, "once", OLD, NEW, "10")["next"] == boot_once.ENTRY
    text = (host.grub / "custom.cfg").read_text(encoding="utf-8")
    (linux,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["linux"]]
    assert linux[1] == f"/boot/vmlinuz-{OLD}"
    assert linux[-2:] == ["panic=10", f"testctl.was={NEW}"]
    assert text.count("menuentry") == 1
    assert text.count("{") == text.count("}")
    assert (host.grub / "grub.cfg").read_text(encoding="utf-8") == MENU
    assert host.rebooted()


MENTIONED = "gnulinux-advanced-/dev/vda1>gnulinux-{}-advanced-/dev/vda1"


@pytest.mark.parametrize(
    ("default", "saved", "release"),
    [
        ("0", "", NEW),
        ("1>1", "", OLD),
        ("1>Debian GNU/Linux, with Linux 6.1.0-56-amd64", "", OLD),
        ("gnulinux-simple-/dev/vda1", "", NEW),
        ("${saved_entry}", "", NEW),
        ("${saved_entry}", MENTIONED.format(OLD), OLD),
        (MENTIONED.format(OLD), MENTIONED.format(NEW), OLD),
        ("gone", "", NEW),
    ],
)
def test_what_grub_boots_by_itself(default: str, saved: str, release: str) -> None:
    found = boot_once.default_of(MENU.replace('set default="0"', f'set default="{default}"'), saved)
    assert found is not None
    assert found.release == release


def test_the_default_is_kept_by_its_name(
    host: Host, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place of the entry is another one as soon as a newer kernel is installed."""
    kept = host.grub / "etc" / "testctl-kernels.cfg"
    monkeypatch.setattr(boot_once, "KEPT", kept)

    def output(*argv: str, timeout_s: float = 0) -> str:
        if argv == ("update-grub",):
            default = kept.read_text(encoding="utf-8").split("'")[1] if kept.exists() else "0"
            (host.grub / "grub.cfg").write_text(MENU.replace('"0"', f'"{default}"'), encoding="utf-8")
        return host.output(*argv)

    monkeypatch.setattr(boot_once, "_output", output)
    said_first = said(capsys, "keep")
    assert (said_first["changed"], said_first["default"]) == (True, NEW)
    assert kept.read_text(encoding="utf-8").endswith(f"\nGRUB_DEFAULT='{MENTIONED.format(NEW)}'\n")
    assert said(capsys, "keep")["changed"] is False
    assert said(capsys, "unkeep")["changed"] is True
    assert not kept.exists()
    assert said(capsys, "unkeep")["changed"] is False


def test_a_menu_whose_ids_change_as_it_is_written_again(
    host: Host, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first update-grub on a machine names entries by the file system's UUID, not by its device."""
    kept = host.grub / "testctl-kernels.cfg"
    monkeypatch.setattr(boot_once, "KEPT", kept)

    def output(*argv: str, timeout_s: float = 0) -> str:
        if argv == ("update-grub",):
            default = kept.read_text(encoding="utf-8").split("'")[1]
            text = MENU.replace("-/dev/vda1'", "-6df1d60a'").replace('"0"', f'"{default}"')
            (host.grub / "grub.cfg").write_text(text, encoding="utf-8")
        return host.output(*argv)

    monkeypatch.setattr(boot_once, "_output", output)
    assert said(capsys, "keep")["default"] == NEW
    assert kept.read_text(encoding="utf-8").count("-6df1d60a") == 2


@pytest.mark.parametrize("words", ["", f"testctl.was={OLD}", f"testctl.was=x testctl.was={OLD}"])
def test_what_a_host_is_to_have_again(
    host: Host, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    line = host.grub / "cmdline"
    line.write_text(f"BOOT_IMAGE=/boot/vmlinuz {words}\n", encoding="utf-8")
    monkeypatch.setattr(boot_once, "COMMAND_LINE", line)
    assert said(capsys, "list")["was"] == (OLD if words else "")


@pytest.mark.parametrize("evil", [one for one in EVIL if not one[0].isspace()])
def test_a_kernel_with_another_name_is_in_no_list(
    host: Host, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, evil: str
) -> None:
    """Neither of the menu nor of the command line."""
    line = host.grub / "cmdline"
    line.write_text(f"testctl.was=6.1{evil}", encoding="utf-8")
    monkeypatch.setattr(boot_once, "COMMAND_LINE", line)
    (host.grub / "grub.cfg").write_text(MENU.replace(OLD, f"6.1{evil.splitlines()[0]}"), encoding="utf-8")
    listed = said(capsys, "list")
    assert listed["kernels"] == [NEW]
    assert listed["was"] in ("", "6.1")


def test_nothing_of_it_is_left(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "once", OLD, NEW, "10")
    assert said(capsys, "clean")["next"] == ""
    assert {path.name for path in host.grub.iterdir()} == {"grub.cfg"}
    assert "error" not in said(capsys, "clean")


def test_the_default_is_booted_without_an_entry(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "once", OLD, NEW, "10")
    host.asked.clear()
    assert said(capsys, "reboot")["next"] == ""
    assert host.rebooted()
    assert {path.name for path in host.grub.iterdir()} == {"grub.cfg"}


def test_somebodys_own_entries_stay(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    own = "menuentry 'memtest' {\n\tlinux16 /boot/memtest\n}\n"
    (host.grub / "custom.cfg").write_text(own, encoding="utf-8")
    said(capsys, "once", OLD, NEW, "10")
    said(capsys, "once", OLD, NEW, "10")  # refused: the first waits
    host.next = ""
    said(capsys, "once", NEW, NEW, "10")
    assert (host.grub / "custom.cfg").read_text(encoding="utf-8").startswith(own)
    assert (host.grub / "custom.cfg").read_text(encoding="utf-8").count(boot_once.BEGIN) == 1
    said(capsys, "clean")
    assert (host.grub / "custom.cfg").read_text(encoding="utf-8") == own


@pytest.mark.parametrize(
    ("words", "change", "error"),
    [
        (("once", "6.9", NEW, "10"), {}, f"want Linux '6.9' in .*; got {NEW}, {OLD}".replace("+", r"\+")),
        (("once", OLD, "6.9", "10"), {}, "want Linux '6.9' in"),
        *((("once", OLD, f"{NEW}{evil}", "10"), {}, "want Linux .* in .*; got 6") for evil in EVIL),
        *((("once", f"{OLD}{evil}", NEW, "10"), {}, "want Linux .* in .*; got 6") for evil in EVIL),
        *((("once", OLD, NEW, f"10{evil}"), {}, "want seconds from a panic .*; got .10") for evil in EVIL),
        (
            ("once", OLD, NEW, "10"),
            {"layers": "lvm"},
            "where GRUB can write, so that it boots a kernel only once; got lvm",
        ),
        (("once", OLD, NEW, "10"), {"next": "memtest"}, "want no other entry for the next boot; got memtest"),
        (("jump",), {}, "want list, once RELEASE WAS PANIC_S, reboot, clean, keep or unkeep; got jump"),
    ],
)
def test_refused_before_anything_changes(
    host: Host, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], change: dict[str, str], error: str
) -> None:
    vars(host).update(change)
    assert re.search(error, str(said(capsys, *words)["error"]))
    assert {path.name for path in host.grub.iterdir()} == {"grub.cfg"}
    assert not host.rebooted()


def test_a_machine_without_grub(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.grub / "grub.cfg").unlink()
    assert "want a machine that boots by GRUB" in said(capsys, "list")["error"]


def test_a_menu_that_reads_no_custom_cfg(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.grub / "grub.cfg").write_text(MENU.replace("custom.cfg", "other.cfg"), encoding="utf-8")
    assert "that reads custom.cfg" in said(capsys, "once", OLD, NEW, "10")["error"]
