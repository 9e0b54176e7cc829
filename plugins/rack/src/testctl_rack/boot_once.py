# SPDX-License-Identifier: Apache-2.0
"""Runs on a host, over SSH, with nothing but Python: lists the kernels of GRUB's menu, boots one of them once.

    list                      what runs, what could, what GRUB boots by itself
    once RELEASE WAS PANIC_S RUN  RELEASE for the next boot only, and reboot; WAS: what the host is to have again
    reboot RUN                the default entry; removes what `once` has written
    clean                     remove what `once` has written
    keep                      GRUB goes on booting by itself what it boots now, whatever kernels are installed
    unkeep                    remove what `keep` has written
Prints JSON; an error is {"error": "want …; got …"}.  `once` writes an entry of its own to GRUB's custom.cfg, a copy of
the menu's with panic=PANIC_S and testctl.was=WAS, and names it in GRUB's environment, where GRUB removes it as it boots
it.  The default entry and grub.cfg stay as they are.  RELEASE and WAS are kernels of the menu.  In what `list` prints,
"was" is the release that a host that was booted once is to have again; it is read from the kernel's command line.

RUN is the SHA-256 of a run's ticket.  Nothing is rebooted unless the host's agent has written, in this boot, that this
run's lease is to last over it (testctl_agent/daemon/boots.py): otherwise another run may have the host by now.

`keep` names the default entry by its id where GRUB has it by its place in the menu, at which a newer kernel would be;
playbooks/roles/kernel calls it before it installs one.  An entry that is named or saved stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

GRUB = Path("/boot/grub")
KEPT = Path("/etc/default/grub.d/testctl-kernels.cfg")
"""What `keep` writes."""
ENTRY = "testctl-once"
BEGIN, END = "# testctl: begin", "# testctl: end"
UPDATE_S = 600.0
"""Of update-grub, which looks at every disk."""
LEASE = Path("/var/lib/testctl/agent/boot.json")
"""What the agent writes; it belongs to the agent's user."""
LEASE_BYTES = 10_000
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
COMMAND_LINE = Path("/proc/cmdline")
RELEASE = re.compile(r"[A-Za-z0-9.+~_-]{1,64}")
"""A kernel's release.  One with other characters is in no list: they would mean something to GRUB, or to Ansible."""
_WAS = "testctl.was="
REBOOT_S = 2
"""From the answer to the reboot, so that the answer arrives."""
_ITEM = re.compile(
    r"^([ \t]*)menuentry [^\n]*'gnulinux-(\S+)-advanced-[^'\n]*' *\{\n(.*?)^\1\}", re.MULTILINE | re.DOTALL
)
_LINE = re.compile(r"^\s*(menuentry|submenu) ['\"]([^'\"]*)['\"][^\n]*?(?:menuentry_id_option|--id) '([^']*)'[^\n]*\{$")
_IMAGE = re.compile(r"^\s*linux\S*\s+\S*/vmlinu[xz]-(\S+)")
_DEFAULT = re.compile(r'^\s*set default="([^"\n]*)"$', re.MULTILINE)
_BLOCK = re.compile(rf"^{BEGIN}.*?^{END}\n", re.MULTILINE | re.DOTALL)
UNWRITABLE = ("btrfs", "zfs", "squash4")
"""File systems to which GRUB can't write."""


class Entry(NamedTuple):
    """An entry of a menu, or a submenu; path: as GRUB names it from the top; release: what an entry boots."""

    title: str
    path: str
    release: str
    inner: list[Entry]


class Wrong(Exception):
    """What keeps this host from booting another kernel."""


def items(menu: str) -> dict[str, str]:
    """Release → the commands that boot it, of each entry of a grub.cfg that Debian's scripts have written."""
    return {
        release: body
        for _, release, body in _ITEM.findall(menu)
        if RELEASE.fullmatch(release) and not release.endswith("-recovery")
    }


def entries(menu: str) -> list[Entry]:
    """The entries of a grub.cfg, in their order."""
    top: list[Entry] = []
    levels: list[list[Entry] | None] = [top]  # None: another block, such as a function's
    paths = [""]
    for line in menu.splitlines():
        if begins := _LINE.match(line):
            path = f"{paths[-1]}>{begins[3]}" if paths[-1] else begins[3]
            new = Entry(begins[2], path, "", [])
            if levels[-1] is not None:
                levels[-1].append(new)
            levels.append(new.inner)
            paths.append(path)
        elif line.rstrip().endswith("{"):
            levels.append(None)
            paths.append(paths[-1])
        elif line.strip() == "}" and len(levels) > 1:
            levels.pop()
            paths.pop()
        elif (image := _IMAGE.match(line)) and len(levels) > 1 and (above := levels[-2]):
            above[-1] = above[-1]._replace(release=image[1])
    return top


def default_of(menu: str, saved: str) -> Entry | None:
    """The entry that GRUB boots by itself: by place, id or title, from the top to a submenu's; None if it has none."""
    settings = [text for text in _DEFAULT.findall(menu) if text != "${next_entry}"]
    path = settings[-1] if settings else "0"
    path = (saved or "0") if path == "${saved_entry}" else path
    level, default = entries(menu), None
    for name in path.split(">"):
        matches = [entry for entry in level if name in (entry.path.rpartition(">")[2], entry.title)]
        if not matches and name.isdecimal():
            matches = level[int(name) : int(name) + 1]
        default = matches[0] if matches else (level[0] if level else None)
        if default is None:
            return None
        level = default.inner
    return default


def entry(body: str, parameters: str) -> str:
    """The entry for one boot: the commands of the menu's, with more parameters for the kernel."""
    lines = [
        f"{line} {parameters}" if line.split()[:1] == ["linux"] else line for line in body.rstrip("\n").splitlines()
    ]
    return "\n".join([f"menuentry 'testctl: one boot' --id '{ENTRY}' {{", *lines, "}", ""])


def without(custom: str) -> str:
    """A custom.cfg without the entry."""
    return _BLOCK.sub("", custom)


def _menu() -> str:
    try:
        return (GRUB / "grub.cfg").read_text(encoding="utf-8")
    except OSError as error:
        raise Wrong(f"want a machine that boots by GRUB ({GRUB}/grub.cfg); got: {error.strerror}") from error


def _output(*argv: str, timeout_s: float = 60.0) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout_s)
    except OSError as error:
        raise Wrong(f"{argv[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Wrong(f"{' '.join(argv)}: did not end within {timeout_s:g} s") from error
    if done.returncode != 0:
        raise Wrong(f"{' '.join(argv)}: exit {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def listed() -> dict[str, object]:
    """What runs, for which, and what could: {"running", "was", "boot", "kernels", "default", "next"}."""
    menu = _menu()
    default = default_of(menu, _variable("saved_entry"))
    return {
        "running": os.uname().release,
        "was": _was(),
        "boot": _boot(),
        "kernels": list(items(menu)),
        "default": default.release if default else "",
        "next": _variable("next_entry"),
    }


def _boot() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip()


def _was() -> str:
    """What this host is to have again after this boot; "" if it was not booted once."""
    parameters = COMMAND_LINE.read_text(encoding="utf-8", errors="replace").split()
    values = [parameter.removeprefix(_WAS) for parameter in parameters if parameter.startswith(_WAS)]
    return values[-1] if values and RELEASE.fullmatch(values[-1]) else ""


def _variable(name: str) -> str:
    """A variable of GRUB's environment; "" if it is not set."""
    values = [line.partition("=")[2] for line in _environment() if line.startswith(f"{name}=")]
    return values[0] if values else ""


def _environment() -> list[str]:
    return _output("grub-editenv", str(GRUB / "grubenv"), "list").splitlines()


def once(release: str, was: str, panic_s: str, run: str) -> dict[str, object]:
    """Boot a release once.  Raises Wrong before anything is changed."""
    menu = _menu()
    kernels = items(menu)
    for needed in (release, was):
        if needed not in kernels:
            raise Wrong(f"want Linux {needed!r} in {GRUB}/grub.cfg; got {', '.join(kernels) or 'none'}")
    if not re.fullmatch("[0-9]{1,4}", panic_s):
        raise Wrong(f"want seconds from a panic to the reboot; got {panic_s!r}")
    if "custom.cfg" not in menu:
        raise Wrong(f"want a {GRUB}/grub.cfg that reads custom.cfg (/etc/grub.d/41_custom, update-grub); got none")
    _writable()
    if waiting := _variable("next_entry"):
        raise Wrong(
            f"want no other entry for the next boot; got {waiting} (grub-editenv {GRUB}/grubenv unset next_entry)"
        )
    _leased(run)
    custom = GRUB / "custom.cfg"
    text = without(custom.read_text(encoding="utf-8")) if custom.exists() else ""
    block = entry(kernels[release], f"panic={panic_s} {_WAS}{was}")
    try:
        _write(custom, f"{text}{BEGIN}\n{block}{END}\n")
        _output("grub-reboot", ENTRY)
        _reboot(run)
    except (Wrong, OSError):
        clean()
        raise
    return listed()


def reboot(run: str) -> dict[str, object]:
    """Boot what the host boots by itself."""
    _leased(run)
    clean()
    _reboot(run)
    return listed()


def _leased(run: str) -> None:
    """Raises Wrong unless the agent's lease, of this boot, is the run's."""
    try:
        with os.fdopen(os.open(LEASE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            lease = json.loads(file.read(LEASE_BYTES))
        ticket, boot, holder = (str(lease[name]) for name in ("ticket", "boot", "holder"))
    except FileNotFoundError as error:
        raise Wrong("want a lease of this run, to boot the host; its agent has given none that lasts") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Wrong(f"{LEASE}: want what the agent writes; got {type(error).__name__}") from error
    if boot != _boot() or hashlib.sha256(ticket.encode()).hexdigest() != run:
        raise Wrong(f"want a lease of this run, to boot the host; it was leased to {holder[:200]!r}")


def _reboot(run: str) -> None:
    _leased(run)
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
    if (
        _variable("next_entry") == ENTRY or "next_entry=" in _environment()
    ):  # GRUB leaves the name when it has booted the entry
        _output("grub-editenv", str(GRUB / "grubenv"), "unset", "next_entry")
    os.sync()
    return listed()


def keep() -> dict[str, object]:
    """Name the default entry by its id, if it is one by its place.  Raises Wrong where that does not keep it."""
    saved = _variable("saved_entry")
    before = default_of(_menu(), saved)
    if before is None or not before.release:
        raise Wrong(f"want a kernel that GRUB boots by itself, in {GRUB}/grub.cfg; got none")
    for tries in range(3):  # update-grub may name the entries otherwise than the one that wrote the menu before
        menu = _menu()
        paths = [entry.path for entry in _all(entries(menu))]
        own = next((path for path in paths if f"gnulinux-{before.release}-advanced-" in path), "")
        if not own:
            raise Wrong(f"want an entry of Linux {before.release} alone in {GRUB}/grub.cfg; got none")
        now = default_of(menu, saved)
        if now is not None and now.path == own:
            return listed() | {"changed": tries > 0}
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        _write(KEPT, f"# SPDX-License-Identifier: Apache-2.0\nGRUB_DEFAULT='{own}'\n")
        _output("update-grub", timeout_s=UPDATE_S)
    unkeep()
    raise Wrong(f"want {before.release} to stay what GRUB boots by itself; {KEPT} does not make it so")


def _all(level: list[Entry]) -> list[Entry]:
    return [entry for above in level for entry in (above, *_all(above.inner))]


def unkeep() -> dict[str, object]:
    """Let GRUB choose as before `keep`."""
    there = KEPT.exists()
    KEPT.unlink(missing_ok=True)
    if there:
        _output("update-grub", timeout_s=UPDATE_S)
    return listed() | {"changed": there}


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.testctl")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    os.sync()


def main(arguments: list[str]) -> None:
    try:
        match arguments:
            case ["list"]:
                reply = listed()
            case ["once", release, was, panic_s, run]:
                reply = once(release, was, panic_s, run)
            case ["reboot", run]:
                reply = reboot(run)
            case ["clean"]:
                reply = clean()
            case ["keep"]:
                reply = keep()
            case ["unkeep"]:
                reply = unkeep()
            case _:
                want = "want list, once RELEASE WAS PANIC_S RUN, reboot RUN, clean, keep or unkeep"
                reply = {"error": f"{want}; got {' '.join(arguments)}"}
    except (Wrong, OSError, ValueError) as error:
        reply = {"error": str(error)}
    print(json.dumps(reply))


if __name__ == "__main__":
    main(sys.argv[1:])
