# SPDX-License-Identifier: Apache-2.0
"""All that is computed of frozen raw files is what golden.txt has: digest, metrics, stalls, recoveries and curves.

`python -m controller.tests.metrics.test_golden` writes golden.txt anew; a change of it needs a reason in its commit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testctl.curves import Window, curves, figure, figures, lanes, series
from testctl.metrics import analyse, instruments_agree, recoveries_table
from testctl.records import Records, load_raw
from testctl.records.digest import RANDOM

from controller.tests.support.synthetic import save

FIXTURES = Path(__file__).parent / "fixtures"
GOLDEN = Path(__file__).with_name("golden.txt")
POINTS = sorted(path.name for path in FIXTURES.iterdir())


def shown(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def computed(name: str) -> Iterator[str]:
    """The lines of a point; values that are not known are left out."""
    records: Records = load_raw(FIXTURES / name)
    analysis = analyse(records)
    yield f"digest {records.digest()}"
    yield f"counters {short(repr(sorted(records.counters.items())))}"
    yield from (f"disagree {why}" for why in instruments_agree(records))
    for flow, values in analysis.metrics.items():
        yield from (f"{flow} {metric} {shown(value)}" for metric, value in values.items() if value == value)
    for kind, table in (("stall", analysis.stalls), ("recovery", recoveries_table(records))):
        for row in table.to_pylist():
            yield f"{kind} " + " ".join(f"{column}={value}" for column, value in row.items() if value not in (-1, ""))
    for flow in records.flows:
        for curve in curves():
            for width in (10**6, 10**8) if curves()[curve].spec.binned == "sum" else (0, 10**6, 10**8):
                table = series(records, flow, curve, width).to_pydict()
                table = {column: [shown(value) for value in table[column]] for column in table if column not in RANDOM}
                count = len(next(iter(table.values())))
                yield f"series {flow} {curve} {width} {count} rows {short(repr(table))}"
    end = int(records.column("time_ns").max()) + 1
    for lane in lanes(records):
        for curve in figures(records):
            drawn = [figure(records, curve, lane, Window(*window, 300)) for window in ((0, end), (end // 3, end // 2))]
            yield f"figure {lane} {curve} {short(repr(drawn))}"


def golden() -> dict[str, list[str]]:
    sections = GOLDEN.read_text(encoding="utf-8").split("# ")[1:]
    return {section.splitlines()[0]: section.splitlines()[1:] for section in sections}


@pytest.mark.parametrize("name", POINTS)
def test_a_frozen_point_gives_what_it_gave(name: str) -> None:
    assert list(computed(name)) == golden()[name]


@pytest.mark.parametrize("name", POINTS)
def test_saved_records_are_loaded_as_they_were(name: str, tmp_path: Path) -> None:
    records = load_raw(FIXTURES / name)
    again = Records.load(save(records, tmp_path))
    assert again == records
    assert again.digest() == records.digest()


if __name__ == "__main__":
    GOLDEN.write_text("".join(f"# {name}\n" + "".join(f"{line}\n" for line in computed(name)) for name in POINTS))
