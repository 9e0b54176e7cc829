# SPDX-License-Identifier: Apache-2.0
"""Cuts the power of a file system while keys are made.  Usage, in a mount namespace: WHERE CUTS SEED"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from testctl_rack import pki

from controller.tests.results.power_cuts import LATER_S, cut_at, steps_of
from controller.tests.results.powercut import disk


def main(where: Path, cuts: int, chance: random.Random) -> None:
    made = where / "made"

    def write(home: Path) -> None:
        pki.make(home / "keys", ["alpha"])
        made.touch()

    with disk(where) as power:
        steps = steps_of(lambda: write(where / "counted"), where)
        for number in range(cuts):
            made.unlink(missing_ok=True)
            home = power.place / f"home{number}"
            at, pause_s = chance.randint(1, steps + steps // 10), chance.random() * LATER_S
            cut_at(power, at, pause_s, lambda home=home: write(home), where / "log")
            if made.exists():
                assert pki.make(home / "keys", ["alpha"]) == [], "what was made is good"
    print(f"{cuts} power cuts among {steps} steps of the keys")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3])))
