# SPDX-License-Identifier: Apache-2.0
"""A bootable disk from a directory: one ext4 partition and GRUB before it, without a loop device and without mounting.

Sector 0 has GRUB's boot.img and the partition table, sectors 1 and following its core image, the partition begins at
1 MiB.  What grub-install writes to a disk that it can open, this writes to a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from testctl.system.subprocesses import run
from testctl_agent.spec.errors import TestbedError

Say = Callable[[str], None]
NAME = "disk.raw"
SIZE_MB = 4096
START = 1 << 20
"""Where the partition begins."""
SECTOR = 512
TABLE = 440
"""Where boot.img's code ends and the disk's signature and partition table begin."""
GRUB = Path("/usr/lib/grub/i386-pc")
MODULES = ("biosdisk", "part_msdos", "ext2")
NOT_GRUBS = "^metadata_csum_seed,^orphan_file,^64bit"
"""Features of ext4 that Debian's GRUB can't read."""

OPTIONS = (str(SIZE_MB), str(START), *MODULES, NOT_GRUBS)


def write(tree: Path, to: Path) -> None:
    """The tree as the disk.  Raises TestbedError."""
    with to.open("wb") as file:
        os.truncate(file.fileno(), SIZE_MB << 20)
    run(["sfdisk", "--quiet", str(to)], stdin=f"label: dos\nstart={START // SECTOR}, type=83, bootable\n")
    run(["mke2fs", "-q", "-F", "-t", "ext4", "-L", "root", "-m", "0", "-O", NOT_GRUBS, "-E", f"offset={START}",
         "-d", str(tree), str(to), f"{SIZE_MB - (START >> 20)}M"], timeout_s=1800.0)  # fmt: skip
    core = to.with_name("core.img")
    run(["grub-mkimage", "-O", "i386-pc", "-p", "(hd0,msdos1)/boot/grub", "-o", str(core), *MODULES])
    code = core.read_bytes()
    core.unlink()
    if len(code) > START - SECTOR:
        raise TestbedError(f"rack: want a core image of GRUB below {START - SECTOR} bytes; got {len(code)}")
    with to.open("r+b") as file:
        file.write((GRUB / "boot.img").read_bytes()[:TABLE])
        file.seek(SECTOR)
        file.write(code)
