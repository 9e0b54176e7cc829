# SPDX-License-Identifier: Apache-2.0
"""Runs on a host, over SSH, with nothing but Python: lists the kernels of GRUB's menu, boots one of them once.

    list                      what runs, what could
    once RELEASE WAS PANIC_S  RELEASE for the next boot only, and reboot; WAS: what the host is to have again
    reboot                    the default entry; removes what `once` has written
    clean                     remove what `once` has written
Prints JSON; an error is {"error": "want …; got …"}.  `once` writes an entry of its own to GRUB's custom.cfg, a copy of
the menu's with panic=PANIC_S and testctl.was=WAS, and names it in GRUB's environment, where GRUB removes it as it boots
it.  The default entry and grub.cfg stay as they are.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

GRUB = Path("/boot/grub")
ENTRY = "testctl-once"
BEGIN, END = "# testctl: begin", "# testctl: end"
REBOOT_S = 2
"""From the answer to the reboot, so that the answer arrives."""
_ITEM = re.compile(
    r"^([ \t]*)menuentry [^\n]*'gnulinux-(\S+)-advanced-[^'\n]*' *\{\n(.*?)^\1\}", re.MULTILINE | re.DOTALL
)
_BLOCK = re.compile(rf"^{BEGIN}.*?^{END}\n", re.MULTILINE | re.DOTALL)
UNWRITABLE = ("btrfs", "zfs", "squash4")
"""File systems to which GRUB can't write."""


class Wrong(Exception):
    """What keeps this host from booting another kernel."""


def items(menu: str) -> dict[str, str]:
    """Release → the commands that boot it, of each entry of a grub.cfg that Debian's scripts have written."""
    found = {release: body for _, release, body in _ITEM.findall(menu)}
    return {release: body for release, body in found.items() if not release.endswith("-recovery")}


def entry(body: str, words: str) -> str:
    """The entry for one boot: the commands of the menu's, with more words for the kernel."""
    lines = [f"{line} {words}" if line.split()[:1] == ["linux"] else line for line in body.rstrip("\n").splitlines()]
    return "\n".join([f"menuentry 'testctl: one boot' --id '{ENTRY}' {{", *lines, "}", ""])


def without(custom: str) -> str:
    """A custom.cfg without the entry."""
    return _BLOCK.sub("", custom)


def _menu() -> str:
    try:
        return (GRUB / "grub.cfg").read_text(encoding="utf-8")
    except OSError as error:
        raise Wrong(f"want a machine that boots by GRUB ({GRUB}/grub.cfg); got: {error.strerror}") from error


def _output(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    except OSError as error:
        raise Wrong(f"{argv[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise Wrong(f"{' '.join(argv)}: exit {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def listed() -> dict[str, object]:
    """What runs and what could: {"running", "boot", "kernels", "next"}."""
    return {
        "running": os.uname().release,
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
        "kernels": list(items(_menu())),
        "next": _next_entry(),
    }


def _next_entry() -> str:
    found = [line.partition("=")[2] for line in _environment() if line.startswith("next_entry=")]
    return found[0] if found else ""


def _environment() -> list[str]:
    return _output("grub-editenv", str(GRUB / "grubenv"), "list").splitlines()


def once(release: str, was: str, panic_s: str) -> dict[str, object]:
    """Boot a release once.  Raises Wrong before anything is changed."""
    menu = _menu()
    kernels = items(menu)
    if release not in kernels:
        raise Wrong(f"want Linux {release} in {GRUB}/grub.cfg; got {', '.join(kernels) or 'none'}")
    if "custom.cfg" not in menu:
        raise Wrong(f"want a {GRUB}/grub.cfg that reads custom.cfg (/etc/grub.d/41_custom, update-grub); got none")
    _writable()
    if waiting := _next_entry():
        raise Wrong(
            f"want no other entry for the next boot; got {waiting} (grub-editenv {GRUB}/grubenv unset next_entry)"
        )
    custom = GRUB / "custom.cfg"
    text = without(custom.read_text(encoding="utf-8")) if custom.exists() else ""
    block = entry(kernels[release], f"panic={panic_s} testctl.was={was}")
    _write(custom, f"{text}{BEGIN}\n{block}{END}\n")
    _output("grub-reboot", ENTRY)
    _reboot()
    return listed()


def reboot() -> dict[str, object]:
    """Boot what the host boots by itself."""
    clean()
    _reboot()
    return listed()


def _reboot() -> None:
    when = [f"--on-active={REBOOT_S}s", "--timer-property=AccuracySec=100ms"]
    _output("systemd-run", "--quiet", *when, "systemctl", "reboot")


def _writable() -> None:
    """GRUB must be able to remove the entry from its environment as it boots it, or it would boot it for ever."""
    where = str(GRUB / "grubenv")
    kind, layers = _output("grub-probe", "--target=fs", where), _output("grub-probe", "--target=abstraction", where)
    if kind in UNWRITABLE or layers:
        raise Wrong(f"want {where} where GRUB can write, so that it boots a kernel only once; got {layers or kind}")


def clean() -> dict[str, object]:
    """Remove the entry, also from the environment, if it waits there."""
    custom = GRUB / "custom.cfg"
    if custom.exists():
        before = custom.read_text(encoding="utf-8")
        after = without(before)
        if not after:
            custom.unlink()
        elif after != before:
            _write(custom, after)
    if _next_entry() == ENTRY or "next_entry=" in _environment():  # GRUB leaves the name when it has booted the entry
        _output("grub-editenv", str(GRUB / "grubenv"), "unset", "next_entry")
    os.sync()
    return listed()


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.testctl")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    os.sync()


def main(words: list[str]) -> None:
    try:
        match words:
            case ["list"]:
                said = listed()
            case ["once", release, was, panic_s]:
                said = once(release, was, panic_s)
            case ["reboot"]:
                said = reboot()
            case ["clean"]:
                said = clean()
            case _:
                said = {"error": f"want list, once RELEASE WAS PANIC_S, reboot or clean; got {' '.join(words)}"}
    except (Wrong, OSError) as error:
        said = {"error": str(error)}
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1:])
