# SPDX-License-Identifier: Apache-2.0
"""The registry finds metrics by file name and refuses incomplete ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import testctl.metrics
from testctl.metrics import MetricInfo, MetricSpec, Number, metrics
from testctl.metrics.core.registry import Metric, MetricError, checked, member
from testctl.records import Records, load_raw

from controller.tests.support.synthetic import bulk, write_point

SPEC = MetricSpec("x", "help", (MetricInfo("x_count", "", "help", needs="sender"),))


def test_every_file_is_a_metric_of_its_name() -> None:
    here = Path(testctl.metrics.__file__).parent
    names = {path.stem for path in here.iterdir() if path.stem != "core" and not path.stem.startswith("_")}
    assert set(metrics()) == names
    assert {"throughput", "stability", "stalls", "jain"} <= names


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (SimpleNamespace(), "metrics/x: want SPEC, a MetricSpec; got NoneType"),
        (
            SimpleNamespace(SPEC=MetricSpec("y", "", SPEC.values)),
            "want SPEC.name 'x', the file's name; got 'y'",
        ),
        (SimpleNamespace(SPEC=SPEC), r"metrics/x: want a function compute\(records, flow\); got NoneType"),
        (SimpleNamespace(SPEC=MetricSpec("x", "", ()), compute=print), "want at least one value"),
        (
            SimpleNamespace(SPEC=MetricSpec("x", "", (MetricInfo("x_count", "", "help"),)), compute=print),
            "x_count: want `needs`, the instruments",
        ),
    ],
)
def test_incomplete_metric_is_refused(module: object, words: str) -> None:
    with pytest.raises(MetricError, match=words):
        member("x", module)


def test_metric_that_yields_what_it_did_not_declare_is_refused(tmp_path: Path) -> None:
    write_point(tmp_path, bulk(10))
    with pytest.raises(MetricError, match="metrics/x: want x_count; got y_count"):
        checked(Metric(SPEC, lambda records, flow: {"y_count": 1}), load_raw(tmp_path), "bulk")


def test_metrics_do_not_change_records(tmp_path: Path) -> None:
    records: Records = load_raw(write_point(tmp_path, bulk(500)))
    before = records.digest()
    first = testctl.metrics.analyse(records)
    assert records.digest() == before
    again = testctl.metrics.analyse(load_raw(tmp_path))
    assert repr(again.metrics) == repr(first.metrics)
    assert again.stalls.equals(first.stalls)


@pytest.mark.parametrize(
    ("name", "needs", "words"),
    [
        ("Bad-Name", "", "metric 'Bad-Name': want a name of small letters"),
        ("x_count", "sender or captures", r"metric x_count: needs: want instruments of .*; got captures"),
    ],
)
def test_a_value_that_is_declared_wrongly_is_refused(name: str, needs: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MetricInfo(name, "", "", needs=needs)


@pytest.mark.parametrize(("value", "text", "words"), [("2", False, "want a number; got '2'"), (2, True, "want text")])
def test_text_and_numbers_are_what_they_are_declared(tmp_path: Path, value: Number, text: bool, words: str) -> None:
    spec = MetricSpec("x", "x", (MetricInfo("x_count", "", "how many", text=text, needs="sender"),))
    records = load_raw(write_point(tmp_path, bulk(10)))
    with pytest.raises(MetricError, match=f"metrics/x: x_count: {words}"):
        checked(Metric(spec, lambda records, flow: {"x_count": value}), records, "bulk")
    unknown = float("nan")
    found = checked(Metric(spec, lambda records, flow: {"x_count": unknown}), records, "bulk")
    assert str(found["x_count"]) == "nan"


def test_what_was_not_measured_is_no_number_whatever_a_metric_says(tmp_path: Path) -> None:
    write_point(tmp_path, {"receiver": bulk(10)["receiver"]})
    spec = MetricSpec("x", "x", (MetricInfo("x_count", "", "how many"),), needs="sender or telemetry")
    found = checked(Metric(spec, lambda records, flow: {"x_count": 0}), load_raw(tmp_path), "bulk")
    assert str(found["x_count"]) == "nan"
