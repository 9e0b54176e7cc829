# SPDX-License-Identifier: Apache-2.0
"""Cuts the power of a file system while batches are kept in a spool.  Usage, in a mount namespace: WHERE CUTS SEED"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from testctl_agent.spec.units import Bytes
from testctl_influx.spool import held
from testctl_influx.target import Destination

from controller.tests.results.power_cuts import LATER_S, cut_at, steps_of
from controller.tests.results.powercut import disk

BATCHES = 5


def main(where: Path, cuts: int, chance: random.Random) -> None:
    claims = where / "claims"

    def write(home: Path) -> None:
        with held(home, Destination("http://127.0.0.1:1"), Bytes(10**6), lambda: None) as spool:
            for number in range(BATCHES):
                spool.add(b"%d" % number * 5000)
                claims.write_text(str(number + 1), encoding="ascii")

    with disk(where) as power:
        steps = steps_of(lambda: write(where / "counted"), where)
        for number in range(cuts):
            claims.write_text("0", encoding="ascii")
            home = power.place / f"home{number}"
            at, pause_s = chance.randint(1, steps + 1), chance.random() * LATER_S
            cut_at(power, at, pause_s, lambda home=home: write(home), where / "log")
            batches = sorted(home.glob("*/*.lp.gz"))
            assert len(batches) >= int(claims.read_text(encoding="ascii")), "what is reported as kept is there"
            for batch in batches:
                assert batch.read_bytes() == b"%d" % int(batch.name[:10]) * 5000
    print(f"{cuts} power cuts among {steps} steps of the spool")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3])))
