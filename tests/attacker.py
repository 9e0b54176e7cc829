# SPDX-License-Identifier: Apache-2.0
"""An unprivileged user of a host while root works there: takes what is put where everybody may write.

Standard library alone, given to a Python of any host on its standard input: python3 - STOP DIR…
It makes each DIR that it can, for everybody; then, until the file STOP appears, it watches all directories that
everybody may write to, moves what root puts there aside and puts its own in place.  One JSON object at the end:
made   directories of DIR that are this user's
seen   names that root made in a directory where everybody, or this user, may write
took   those of them that this user could move or write
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import struct
import sys

CREATED = 0x100 | 0x80  # IN_CREATE, IN_MOVED_TO
PLACES = ("/tmp", "/var", "/run", "/etc", "/opt", "/srv", "/home", "/usr/local")
EVIL = "written by the attacker of the tests of testctl\n"


class Watch:
    """inotify over directories that this user may read."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(os.O_NONBLOCK)
        self._paths: dict[int, str] = {}

    def add(self, path: str) -> None:
        number = self._libc.inotify_add_watch(self._file, path.encode(), CREATED)
        if number >= 0:
            self._paths[number] = path

    def names(self, timeout_s: float) -> list[str]:
        """What was made since."""
        if not select.select([self._file], [], [], timeout_s)[0]:
            return []
        data, found = os.read(self._file, 1 << 16), []
        while data:
            number, _, _, length = struct.unpack_from("iIII", data)
            found.append(os.path.join(self._paths.get(number, "?"), data[16 : 16 + length].rstrip(b"\0").decode()))
            data = data[16 + length :]
        return found


def everybodys() -> list[str]:
    """Directories that everybody may write to."""
    found = []
    for place in PLACES:
        for folder, _, _ in os.walk(place):
            with contextlib.suppress(OSError):
                if os.stat(folder).st_mode & 0o002:
                    found.append(folder)
    return found


def take(path: str) -> bool:
    """Put something of this user's in place of what root made; whether it could."""
    try:
        folder = os.path.isdir(path)
        os.rename(path, path + ".aside")
        if folder:
            os.mkdir(path)
            os.chmod(path, 0o777)
        else:
            with open(path, "w") as out:
                out.write(EVIL)
    except OSError:
        try:
            file = os.open(path, os.O_WRONLY | os.O_TRUNC)  # only what is still there
        except OSError:
            return False
        os.write(file, EVIL.encode())
        os.close(file)
    return True


def main() -> None:
    stop, wanted = sys.argv[1], sys.argv[2:]
    made: list[str] = []
    seen: list[str] = []
    took: list[str] = []
    for path in wanted:
        with contextlib.suppress(OSError):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o777)
            made.append(path)
    watch = Watch()
    for path in everybodys():
        watch.add(path)
    print("ready", flush=True)
    while not os.path.exists(stop):
        for path in watch.names(0.2):
            try:
                own = os.lstat(path).st_uid == os.getuid()
            except OSError:
                own = False  # it is gone already
            if own:
                continue
            seen.append(path)
            watch.add(path)
            if take(path):
                took.append(path)
                watch.add(path)
    print(json.dumps({"made": made, "seen": seen, "took": took}))


if __name__ == "__main__":
    main()
