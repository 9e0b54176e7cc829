# SPDX-License-Identifier: Apache-2.0
"""python mutants.py DIR COUNT: reads captures and telemetry with random bytes changed, and cut off.

It prints how many were records and how many were refused.
"""

from __future__ import annotations

import json
import mmap
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[3]))

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.records import RecordsError
from testctl.records.packets import read_packets
from testctl.records.telemetry import NEEDED, Telemetry

from controller.tests.support.synthetic import bulk, write_pcap

FLOW = {"name": "bulk", "from": "sender", "to": "receiver", "generator": "tgen", "server_port": 5001,
        "client_port": 40000, "parallel": 2, "options": {}}  # fmt: skip
SIZES = {"ordinal": 4, "flags": 1, "verdict": 1, "fate": 2, "arrival_ns": 8, "departure_ns": 8, "queue_bytes": 8}
KIND = np.dtype([(name, f"<u{SIZES.get(name, 4)}") for name in reversed(NEEDED)])
INTERESTING = (0, 1, 2, 3, 4, 5, 8, 10, 60, 127, 128, 255)


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Between none and many changes, half of them in the headers of frames."""
    found = bytearray(data)
    for _ in range(draw.choice((0, 1, 1, 2, 8, 100, 1000))):
        at = draw.randrange(24 if draw.random() < 0.9 else 0, len(found))
        found[at] = draw.choice(INTERESTING) if draw.random() < 0.7 else draw.randrange(256)
    if draw.random() < 0.3:
        del found[draw.randrange(len(found)) :]
    return bytes(found)


def telemetry(draw: random.Random) -> Telemetry:
    count = draw.choice((0, 1, 50))
    records = np.zeros(count, KIND)
    records["flow"] = np.array([draw.randrange(6) for _ in range(count)])
    noise = np.frombuffer(draw.randbytes(records.nbytes), np.uint8).view(KIND) if count else records
    records = noise.copy() if draw.random() < 0.5 else records
    pages = mmap.mmap(-1, max(records.nbytes, 1))
    pages.write(records.tobytes())
    return Telemetry(np.frombuffer(pages, KIND, count), draw.choice((0, -(2**62), 2**62)), 0, truncated=False)


def main() -> None:
    where, count = Path(sys.argv[1]), int(sys.argv[2])
    said = {"records": 0, "refused": 0}
    for seed in range(count):
        draw = random.Random(seed)
        addresses: Any = draw.choice((("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")))
        outcome = Outcome.from_json(
            {"t0_ns": 0, "addresses": dict(zip(("sender", "receiver"), addresses, strict=True))}
        )
        settings = {"sender": {"mtu": draw.choice((68, 1500, 9000))}}
        point = PointSpec.from_json({"id": "a", "tuples": [], "settings": settings, "flows": [FLOW], "topology": {}})
        paths = {}
        for host, seen in bulk(60).items():
            seen["sacks"][::7, :4] = (1, 2, 3, 4)
            write_pcap(where / host, seen, addresses=addresses, big_endian=seed % 2 == 0, vlan=draw.choice((None, 1)))
            (where / host).write_bytes(mutated((where / host).read_bytes(), draw))
            paths[host] = where / host
        try:
            table, _ = read_packets(paths, point, outcome, {"switch": telemetry(draw)})
        except RecordsError as error:
            if str(where) not in str(error):
                raise
            said["refused"] += 1
        else:
            table.validate(full=True)
            assert (
                table.column("time_ns").combine_chunks().equals(pa.array(np.sort(table.column("time_ns").to_numpy())))
            )
            said["records"] += 1
    print(json.dumps(said))


if __name__ == "__main__":
    main()
