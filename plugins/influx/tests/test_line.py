# SPDX-License-Identifier: Apache-2.0
"""Line protocol: what is written is what a real InfluxDB reads."""

from __future__ import annotations

import math
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testctl_influx.line import head, line, writable

from plugins.influx.tests.influxd import Influxd

# Half of the characters are those that the protocol gives a meaning.
CHARACTERS = st.one_of(st.sampled_from(" ,=\"\\#'./*_µ"), st.characters(exclude_categories=["Cs", "Cc"]))
NAMES = st.text(CHARACTERS, min_size=1, max_size=12).map(writable)
TEXTS = st.text(st.one_of(CHARACTERS, st.sampled_from("\n\r\t")), max_size=20)
KEYS = st.dictionaries(NAMES, NAMES, max_size=4)
EXAMPLE = count()
busy = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@busy
@given(name=NAMES, tags=KEYS, fields=st.dictionaries(NAMES, TEXTS, min_size=1, max_size=4))
def test_names_and_texts_come_back(influxd: Influxd, name: str, tags: dict[str, str], fields: dict[str, str]) -> None:
    measurement = f"m{next(EXAMPLE)}{name}"
    tags = {f"t{name}": value for name, value in tags.items()}
    fields = {f"f{name}": text for name, text in fields.items()}
    # The line behind it: whatever the first one ends in, it ends there.
    behind = line(head(measurement, {"behind": "1"}), {"x": 2.0}, 2)
    answer = influxd.write(f"{line(head(measurement, tags), fields, 1)}\n{behind}")
    assert answer.status_code == 204, answer.text
    quoted = measurement.replace("\\", "\\\\").replace('"', '\\"')
    found = influxd.ask(f'SELECT * FROM "{quoted}" GROUP BY *')
    seen = []
    for one in found:
        mine = {key: value for key, value in one["tags"].items() if value}
        seen += [(one["name"], mine, dict(zip(one["columns"], row, strict=True))) for row in one["values"]]
    nothing = dict.fromkeys(fields)
    assert sorted(seen, key=lambda one: int(one[2]["time"])) == [
        (measurement, tags, {"time": 1, "x": None, **fields}),
        (measurement, {"behind": "1"}, {"time": 2, "x": 2, **nothing}),
    ]


@busy
@given(
    st.lists(
        st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**53), 2**53)),
        min_size=1,
        max_size=50,
    )
)
def test_numbers_come_back_exactly(influxd: Influxd, numbers: list[float]) -> None:
    measurement = f"n{next(EXAMPLE)}"
    start = head(measurement, {})
    lines = (str(line(start, {"x": value}, at)) for at, value in enumerate(numbers))
    assert influxd.write("\n".join(lines)).status_code == 204
    # JSON's 3e16 may come as an integer.
    assert [float(row["x"]) for row in influxd.rows(f"SELECT x FROM {measurement}")] == numbers


def test_what_has_no_value_is_left_out() -> None:
    fields = {"a": None, "b": math.nan, "c": -math.inf, "d": 1, "e": ""}
    assert line(head("m", {"x": "", "y": "1"}), fields, 5) == 'm,y=1 d=1.0,e="" 5'
    assert line(head("m", {}), {"a": None}, 5) is None


@pytest.mark.parametrize(
    ("measurement", "tags"),
    [("", {}), ("#m", {}), ("m\n", {}), ("m\\", {}), ("m", {"a\\": "1"}), ("m", {"a": "1\n"}), ("m", {"a": "1\\"}),
     ("m", {"time": "1"}), ("m", {"": "1"})],
)  # fmt: skip
def test_what_the_protocol_can_not_write_is_refused(measurement: str, tags: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="line protocol: want"):
        head(measurement, tags)


@given(st.text())
def test_any_text_can_be_made_a_tag(text: str) -> None:
    clean = writable(text)
    assert writable(clean) == clean
    if clean:
        head("m", {"a": clean})
