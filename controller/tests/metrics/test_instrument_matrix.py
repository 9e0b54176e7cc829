# SPDX-License-Identifier: Apache-2.0
"""Every value of every metric with every set of instruments: what all of them say, or null.

The point is real (fixtures/all_instruments: the lab, Linux 6.12, CUBIC with ECN at 10 Mb/s and 20 ms; five losses that
ACKs repair, a lost tail, a lost probe; two flows between the same hosts): it was recorded by everything, and is
loaded again without the files of what is left out, as if the plan had turned it off.
"""

from __future__ import annotations

import json
import math
import shutil
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from testctl.metrics import Number, analyse, metric_names, metrics
from testctl.metrics.core.spec import INSTRUMENTS
from testctl.records import load_raw

FIXTURE = Path(__file__).parent / "fixtures" / "all_instruments"
FILES = {
    "sender": ["sender/capture"],
    "receiver": ["receiver/capture"],
    "telemetry": ["switch/telemetry"],
    "tcp_info": ["sender/tcp_info"],
    "tcp_events": ["sender/tcp_events"],
    "counters": ["sender/counters", "receiver/counters"],
}
SETS = [frozenset(some) for count in range(len(FILES) + 1) for some in combinations(FILES, count)]
REQUESTS = "requests"
"""What the applications of a flow with requests record; the point has none, tests/test_workload.py has."""
NEVER_HERE = ("clock_", "failure_time_s", "oscillation_", "stability_std_1s", "stability_cv_1s",
              "connection_stability_mean_cv_1s", "connection_stability_worst_cv_1s")  # fmt: skip
"""One clock; no connection that fails; and too short for these."""

Values = dict[str, dict[str, Number]]


@cache
def measured(instruments: frozenset[str]) -> Values:
    """{flow: {name: value}} by these instruments alone."""
    with TemporaryDirectory() as scratch:
        where = Path(scratch) / "point"
        shutil.copytree(FIXTURE, where)
        point = json.loads((where / "point.json").read_text())
        for name in FILES.keys() - instruments:
            for entity, collector in (place.split("/") for place in FILES[name]):
                shutil.rmtree(where / "raw" / entity / collector)
                del point["collect"][entity][collector]
        (where / "point.json").write_text(json.dumps(point))
        return analyse(load_raw(where)).metrics


def known(value: Number) -> bool:
    return not (isinstance(value, float) and math.isnan(value))


def _of_requests(name: str) -> bool:
    """Whether a metric is of requests alone."""
    return not metric_names()[name].measured_by(frozenset(FILES)) and metric_names()[name].measured_by(
        frozenset({REQUESTS})
    )


def test_every_instrument_is_tried() -> None:
    assert FILES.keys() | {REQUESTS} == INSTRUMENTS.keys()
    assert len(SETS) == 2 ** len(FILES)


def test_the_point_has_a_value_of_every_metric() -> None:
    everything = measured(frozenset(FILES))
    flows = {"flow": "bulk", "point": "*"}
    values = {v.name: everything[flows[m.spec.scope]][v.name] for m in metrics().values() for v in m.spec.values}
    assert values.keys() == metric_names().keys()
    assert {name for name, value in values.items() if not known(value)} == {
        name for name in values if name.startswith(NEVER_HERE) or _of_requests(name)
    }
    assert (values["retransmission_timeouts"], values["loss_probes"], values["recoveries"]) == (1, 1, 2)


@pytest.mark.parametrize("instruments", SETS, ids=lambda some: "+".join(sorted(some)) or "none")
def test_a_value_is_what_all_instruments_say_or_null(instruments: frozenset[str]) -> None:
    everything, found = measured(frozenset(FILES)), measured(instruments)
    wrong = []
    for flow, values in everything.items():
        for name, right in values.items():
            value = found[flow][name]
            declared = metric_names()[name].measured_by(instruments)
            same = value == right or (not known(value) and not known(right))
            if not (same if declared else not known(value)):
                wrong.append(f"{name} of {flow}: want {right if declared else 'null'}; got {value}")
    assert wrong == []
