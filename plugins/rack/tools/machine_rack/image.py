# SPDX-License-Identifier: Apache-2.0
"""The disk that all machines of a rack begin with: Debian, GRUB, two kernels; made once, without loop devices.

Below the cache, machines/KEY/: disk.raw, the SSH key of its root (id, id.pub) and the key of its SSH server (host.pub).
KEY covers what determines it: the packages with the versions that apt would install, the options of the programs that
make it, and the files of image/.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from testctl.system.subprocesses import run
from testctl_agent.spec.errors import TestbedError
from testctl_agent.system.toolchain import cache_dir

from machine_rack import disk

SUITE = "bookworm"
KERNELS = ("linux-image-amd64", "linux-image-6.12-amd64")
PACKAGES = (
    "systemd-sysv", "udev", "dbus", "openssh-server", "grub2-common", "initramfs-tools", "busybox", "zstd", "kmod",
    "cpio", "procps", "iproute2", "iputils-ping", "python3", "python3-apt", "chrony", "linuxptp",
    "ethtool", "tcpdump", "iperf3", *KERNELS,
)  # fmt: skip
OFFERED = ("iperf3", "nftables", "influxdb", "gcc", "libc6-dev")
"""Packages in a repository on the disk, for playbooks and tests to install: a machine reaches no other."""
OPTIONS = (
    "--quiet", "--mode=root", "--variant=minbase", "--format=directory", '--aptopt=Acquire::Languages "none"',
    '--aptopt=APT::Install-Recommends "false"', "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
)  # fmt: skip
"""Of mmdebstrap."""
ALONE = ("unshare", "--mount", "--propagation", "private")
"""Before mmdebstrap: what it mounts in the tree goes with it, also when it is killed."""
PROGRAMS = {
    "mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "sfdisk": "fdisk", "grub-mkimage": "grub-common",
    "dpkg-scanpackages": "dpkg-dev", "ssh-keygen": "openssh-client", "qemu-img": "qemu-utils",
    "qemu-system-x86_64": "qemu-system-x86",
}  # fmt: skip
"""Program → its Debian package."""
NEEDS_BYTES = 5 << 30
"""What a build needs: the tree, the file system, and the disk, which is sparse."""
BUILD_S = 3600.0
FILES = Path(__file__).with_name("image")


def lacking() -> str:
    """Why no image can be made or run here; "" when it can."""
    missing = sorted({package for program, package in PROGRAMS.items() if not _there(program)})
    if not Path("/usr/lib/grub/i386-pc/boot.img").exists():
        missing.append("grub-pc-bin")
    return f"these Debian packages are missing: {', '.join(missing)} (tools/setup --machines)" if missing else ""


def _there(program: str) -> bool:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None


def sources() -> list[str]:
    """Debian's archives as apt on this machine has them, as lines of a sources.list.  Raises TestbedError."""
    text = run(["apt-get", "indextargets", "--format", "$(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
                "Created-By: Packages", "Origin: Debian"])  # fmt: skip
    lines = [line.partition(" ") for line in text.splitlines()]
    found = [line for codename, _, line in lines if codename.startswith(SUITE) and "backports" not in codename]
    if not found:
        raise TestbedError(f"rack: want Debian {SUITE} among apt's sources; got {text.strip() or 'none'} (apt update)")
    return list(dict.fromkeys(found))


def key() -> str:
    """What determines the image, as a hash.  Raises TestbedError for a package that apt does not know."""
    policy = run(["apt-cache", "policy", *PACKAGES, *OFFERED])
    found = dict(re.findall(r"^(\S+):\n.*\n\s+Candidate: (\S+)", policy, re.MULTILINE))
    if missing := [name for name in (*PACKAGES, *OFFERED) if found.get(name, "(none)") == "(none)"]:
        raise TestbedError(f"rack: want the packages {', '.join(missing)}; apt has none of them (apt update)")
    words = [*(f"{name} {version}" for name, version in sorted(found.items())), *OPTIONS, *disk.OPTIONS]
    digest = hashlib.sha256("\n".join(words).encode())
    for path in sorted(FILES.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def image(say: disk.Say) -> Path:
    """The directory of the image, which is made where the cache has none.  Raises TestbedError."""
    if why := lacking():
        raise TestbedError(f"rack: {why}")
    place = cache_dir() / "machines" / key()
    if (place / disk.NAME).exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / disk.NAME).exists():
            _build(place, say)
    return place


def _build(place: Path, say: disk.Say) -> None:
    free = shutil.disk_usage(place.parent).free
    if free < NEEDS_BYTES:
        raise TestbedError(
            f"rack: want {NEEDS_BYTES >> 20} MB free in {place.parent} for an image; got {free >> 20} MB "
            "(TESTCTL_CACHE names another directory)"
        )
    for killed in place.parent.glob(".build-*"):
        shutil.rmtree(killed)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=place.parent) as folder:
        work, tree = Path(folder), Path(folder, "tree")
        fresh = work / "image"
        fresh.mkdir(mode=0o700)
        for name, comment in (("id", "testctl rack"), ("host", "testctl machine")):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(fresh / name)])
        say("installing Debian")
        (work / "sources.list").write_text("\n".join(sources()) + "\n", encoding="utf-8")
        hook = f'{FILES / "customize"} "$1" {fresh} {" ".join(OFFERED)}'
        run(
            [*ALONE, "mmdebstrap", *OPTIONS, f"--include={','.join(PACKAGES)}",
             f'--setup-hook={FILES / "prepare"} "$1"', f"--customize-hook={hook}", SUITE, str(tree),
             str(work / "sources.list")],
            timeout_s=BUILD_S,
        )  # fmt: skip
        say("writing the disk")
        disk.write(tree, fresh / disk.NAME)
        shutil.rmtree(tree)
        (fresh / "host").unlink()  # on the disk
        fresh.rename(place)
