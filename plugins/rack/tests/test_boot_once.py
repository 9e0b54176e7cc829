# SPDX-License-Identifier: Apache-2.0
"""What a host does to boot another kernel once: GRUB's menu as Debian 12 writes it, and the files that are written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from testctl_agent.daemon import boots
from testctl_rack import boot_once
from testctl_rack.boot_leases import run_of

MENU = (Path(__file__).parent / "fixtures" / "grub.cfg").read_text(encoding="utf-8")
NEW, OLD = "6.12.117+deb12-amd64", "6.1.0-56-amd64"
EVIL = (" init=/tmp/x", "\n}\nmenuentry 'x' {", "'", '"', ";", "$x", "{{ 7 * 7 }}", "\x00", "\t", "é")
"""Ends of words that would be more than a word to GRUB or to Ansible."""


class Host:
    """/boot/grub and the programs of a host; what they were asked."""

    def __init__(self, grub: Path) -> None:
        self.grub = grub
        grub.mkdir()
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
    found = Host(tmp_path / "grub")
    monkeypatch.setattr(boot_once, "GRUB", found.grub)
    monkeypatch.setattr(boot_once, "_output", found.output)
    monkeypatch.setattr(boot_once, "LEASE", tmp_path / "boot.json")
    leased(found)
    return found


TICKET = "0123456789abcdef"
RUN = run_of(TICKET)


def leased(host: Host, **changes: str) -> None:
    """What the agent writes for a run that boots the host."""
    noted = {"ticket": TICKET, "holder": "bob", "limit_s": 60.0, "boot": boot_once._boot(), **changes}
    (host.grub.parent / "boot.json").write_text(json.dumps(noted), encoding="utf-8")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    boot_once.main(list(words))
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_kernels_are_those_of_the_menu_newest_first(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "list")["kernels"] == [NEW, OLD]


def test_an_entry_of_one_boot(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy of the menu's entry, of this kernel alone; the menu stays as it is."""
    assert said(capsys, "once", OLD, NEW, "10", RUN)["next"] == boot_once.ENTRY
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


@pytest.mark.parametrize("words", [("once", OLD, NEW, "10", RUN), ("reboot", RUN)])
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ticket": "another"}, "want a lease of this run, to boot the host; it was leased to 'bob"),
        ({"boot": "an earlier one"}, "want a lease of this run"),
        ({}, "its agent has given none"),
    ],
)
def test_a_host_that_another_run_may_have_is_not_booted(
    host: Host, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], changes: dict[str, str], says: str
) -> None:
    if changes:
        leased(host, **changes)
    else:
        boot_once.LEASE.unlink()
    assert says in said(capsys, *words)["error"]
    assert {path.name for path in host.grub.iterdir()} == {"grub.cfg"}
    assert not host.rebooted()


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 5000, '{"ticket": 1, "boot": 2, "holder": 3}'])
def test_a_lease_that_is_none(host: Host, capsys: pytest.CaptureFixture[str], text: str) -> None:
    boot_once.LEASE.write_text(text, encoding="utf-8")
    assert "want " in said(capsys, "reboot", RUN)["error"]
    boot_once.LEASE.unlink()
    boot_once.LEASE.symlink_to("/dev/zero")
    assert "want what the agent writes; got OSError" in said(capsys, "reboot", RUN)["error"]
    assert not host.rebooted()


def test_a_lease_that_ends_meanwhile(
    host: Host, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is there already, and is removed."""

    def output(*argv: str, timeout_s: float = 0) -> str:
        if argv[0] == "grub-reboot":
            boot_once.LEASE.unlink()
        return host.output(*argv)

    monkeypatch.setattr(boot_once, "_output", output)
    assert "want a lease of this run" in said(capsys, "once", OLD, NEW, "10", RUN)["error"]
    assert {path.name for path in host.grub.iterdir()} == {"grub.cfg"}
    assert not host.rebooted()
    assert host.next == ""


def test_root_looks_where_the_deployed_agent_writes() -> None:
    role = Path(__file__).parents[3] / "playbooks/roles/agent"
    defaults = yaml.safe_load((role / "defaults/main.yml").read_text(encoding="utf-8"))
    assert '"{{ agent_state }}/agent/journal.jsonl"' in (role / "tasks/configure.yml").read_text(encoding="utf-8")
    assert Path(defaults["agent_state"]) / "agent" / boots.NAME == boot_once.LEASE
    assert boots.ORDERED_S >= 2 * boot_once.REBOOT_S


def test_nothing_of_it_is_left(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "once", OLD, NEW, "10", RUN)
    assert said(capsys, "clean")["next"] == ""
    assert {path.name for path in host.grub.iterdir()} == {"grub.cfg"}
    assert "error" not in said(capsys, "clean")


def test_the_default_is_booted_without_an_entry(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "once", OLD, NEW, "10", RUN)
    host.asked.clear()
    assert said(capsys, "reboot", RUN)["next"] == ""
    assert host.rebooted()
    assert {path.name for path in host.grub.iterdir()} == {"grub.cfg"}


def test_somebodys_own_entries_stay(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    own = "menuentry 'memtest' {\n\tlinux16 /boot/memtest\n}\n"
    (host.grub / "custom.cfg").write_text(own, encoding="utf-8")
    said(capsys, "once", OLD, NEW, "10", RUN)
    said(capsys, "once", OLD, NEW, "10", RUN)  # refused: the first waits
    host.next = ""
    said(capsys, "once", NEW, NEW, "10", RUN)
    assert (host.grub / "custom.cfg").read_text(encoding="utf-8").startswith(own)
    assert (host.grub / "custom.cfg").read_text(encoding="utf-8").count(boot_once.BEGIN) == 1
    said(capsys, "clean")
    assert (host.grub / "custom.cfg").read_text(encoding="utf-8") == own


@pytest.mark.parametrize(
    ("words", "change", "error"),
    [
        (("once", "6.9", NEW, "10", RUN), {}, f"want Linux '6.9' in .*; got {NEW}, {OLD}".replace("+", r"\+")),
        (("once", OLD, "6.9", "10", RUN), {}, "want Linux '6.9' in"),
        *((("once", OLD, f"{NEW}{evil}", "10", RUN), {}, "want Linux .* in .*; got 6") for evil in EVIL),
        *((("once", f"{OLD}{evil}", NEW, "10", RUN), {}, "want Linux .* in .*; got 6") for evil in EVIL),
        *((("once", OLD, NEW, f"10{evil}", RUN), {}, "want seconds from a panic .*; got .10") for evil in EVIL),
        (
            ("once", OLD, NEW, "10", RUN),
            {"layers": "lvm"},
            "where GRUB can write, so that it boots a kernel only once; got lvm",
        ),
        (("once", OLD, NEW, "10", RUN), {"next": "memtest"}, "want no other entry for the next boot; got memtest"),
        (("jump",), {}, "want list, once RELEASE WAS PANIC_S RUN, reboot RUN, clean, keep or unkeep; got jump"),
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
    assert "that reads custom.cfg" in said(capsys, "once", OLD, NEW, "10", RUN)["error"]


def test_what_is_no_text_is_an_error_in_words(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.grub / "custom.cfg").write_bytes(b"# caf\xe9\n")
    assert "can't decode byte 0xe9" in said(capsys, "clean")["error"]


def test_a_program_that_does_not_end_is_an_error_in_words() -> None:
    with pytest.raises(boot_once.Wrong, match=r"^sleep 60: did not end within 0\.05 s$"):
        boot_once._output("sleep", "60", timeout_s=0.05)


@pytest.mark.parametrize("program", ["grub-reboot", "systemd-run"])
def test_a_boot_that_can_not_begin_leaves_no_entry(
    host: Host, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    def output(*argv: str) -> str:
        found = host.output(*argv)
        if argv[0] == program:
            raise boot_once.Wrong(f"{program}: exit 1")
        return found

    monkeypatch.setattr(boot_once, "_output", output)
    assert said(capsys, "once", OLD, NEW, "10", RUN) == {"error": f"{program}: exit 1"}
    assert host.next == ""
    assert not (host.grub / "custom.cfg").exists()
