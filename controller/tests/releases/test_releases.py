# SPDX-License-Identifier: Apache-2.0
"""Groups of points that differ between two kernels, the user's entries about them, and the pages."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from testctl.cli.releases import _print
from testctl.compare import compare_runs
from testctl.records.schema import SACK_EDGES
from testctl.releases.cause import Cause, cause
from testctl.releases.entries import Entry, load_entries
from testctl.releases.groups import Compared, compared, grouped
from testctl.releases.site import check_out, write_site
from testctl.results.layout import REPORT
from testctl_agent.spec.errors import PlanError

from controller.tests.compare.written import TUPLES, Given, write_run

BETWEEN = ("6.1", "6.12")
NO_SACK = dict.fromkeys(SACK_EDGES, -1)
DATA: dict[str, Any] = {"length": 1448, "flags": 16, **NO_SACK}
ACKED: dict[str, Any] = {"direction": 1, "where": "receiver", "flags": 16, "ack": 1448, **NO_SACK}
ENTRY = """
groups:
  - name: ACKs wait
    between: ["6.1", "6.12"]
    key: "the receiver: ACK of a later byte*"
    tuples: {hosts.cc: [cubic, reno]}
    label: expected
    reason: because
    source: Linux 6.7
    bug: one
"""


def differ(where: Path, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Cause:
    runs = [write_run(where / name, [Given(packets=[DATA, *of])]) for name, of in (("old", old), ("new", new))]
    (difference,) = compare_runs(*runs).differences
    return cause(runs[0].points[0].path, runs[1].points[0].path, difference)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ([ACKED], [ACKED | {"ack": 2896, "time_ns": 5000}], "the receiver: ACK of a later byte"),
        ([DATA | {"seq": 1448}], [], "the sender: data less"),
        ([], [DATA | {"seq": 1448}], "the sender: data more"),
        ([DATA | {"seq": 1448}], [DATA | {"seq": 1448, "length": 2896}], "the sender: data that is longer"),
        ([ACKED], [ACKED | {"sack1_start": 5, "sack1_end": 9}], "the receiver: ACK with SACK instead of ACK"),
        ([DATA | {"seq": 1448}], [DATA | {"retrans": True}], "the sender: retransmission instead of data"),
        ([DATA | {"ecn": 2}], [DATA | {"ecn": 1}], "the sender: data with ECT(1) instead of ECT(0)"),
        ([DATA], [DATA | {"flags": 144}], "the sender: data with other flags"),
        ([ACKED | {"window": 9}, ACKED], [ACKED, ACKED | {"ack": 9}], "the receiver: ACK of an earlier byte"),
        ([DATA | {"time_ns": 10**8}], [DATA | {"time_ns": 2 * 10**8, "window": 9}], "the sender: data later"),
        ([ACKED | {"time_ns": 3 * 10**6}], [ACKED | {"time_ns": 2 * 10**6}], "the receiver: ACK earlier"),
    ],
)
def test_the_first_difference_in_what_hosts_do(
    tmp_path: Path, old: list[dict[str, Any]], new: list[dict[str, Any]], key: str
) -> None:
    found = differ(tmp_path, old, new)
    assert found.key == f"{key}, before any loss"
    assert len(found.packets) == 2


def test_of_packets_of_the_same_time_the_first_connection_s_is_named(tmp_path: Path) -> None:
    """And not another one in each process, as sets of text have their order."""
    old = [DATA | {"conn": number, "time_ns": 0} for number in range(20)]
    new = [packet | {"length": 2896 if packet["conn"] == 0 else 9} for packet in old]
    assert differ(tmp_path, old, new).key == "the sender: data that is longer, before any data"


@pytest.mark.parametrize(("changed", "what"), [({"window": 9}, "window"), ({"time_ns": 5}, "times")])
def test_windows_and_times_alone_are_differences_of_their_own(
    tmp_path: Path, changed: dict[str, Any], what: str
) -> None:
    assert differ(tmp_path, [ACKED | changed], [ACKED]) == Cause(f"the same packets but for their {what}")


def test_the_phase_is_what_the_connection_went_through(tmp_path: Path) -> None:
    again = DATA | {"retrans": True}
    assert differ(tmp_path, [again, DATA], [again]).key == "the sender: data less, after a retransmission"


def points(where: Path, new: dict[str, list[dict[str, Any]]]) -> Compared:
    """Four points, two of each congestion control; new: the packets of those that differ."""
    given = [
        Given(id=f"a{n}", tuples=[("hosts", "cc", cc), *TUPLES[1:]], packets=[DATA, ACKED], repeat=n)
        for n, cc in enumerate(("cubic", "cubic", "bbr", "bbr"))
    ]
    changed = [
        replace(one, packets=[DATA, *new[one.id]], metrics={"throughput_bps": 5e8}) if one.id in new else one
        for one in given
    ]
    runs = write_run(where / "old", given), write_run(where / "new", changed)
    return compared("p", BETWEEN, runs, entries(where))


def entries(where: Path, text: str = ENTRY) -> list[Entry]:
    file = where / "entries.yaml"
    file.write_text(text, encoding="utf-8")
    return load_entries(file, ["one"])


LATER = [ACKED | {"ack": 2896}]


def test_points_are_grouped_by_cause_and_an_entry_explains_its_own(tmp_path: Path) -> None:
    found = points(tmp_path, {"a0": LATER, "a1": LATER, "a2": LATER, "a3": []})
    groups = grouped([found])
    assert [(group.label, len(group.points), group.own) for group in groups] == [
        ("unknown", 1, ()),
        ("unknown", 1, ()),
        ("expected", 2, ("hosts.cc=cubic",)),
    ]
    assert {group.name for group in groups} == {
        "ACKs wait", "the receiver: ACK of a later byte, before any loss", "the receiver: ACK less, before any loss"
    }  # fmt: skip
    assert groups[2].metrics() == ["throughput_bps of bulk: 1 Gb/s → 500 Mb/s in a0; median -50 % over 2"]
    assert groups[2].to_json()["source"] == "Linux 6.7"


def test_the_name_of_a_plan_is_printed_as_it_is(tmp_path: Path) -> None:
    text = io.StringIO()
    _print([replace(points(tmp_path, {}), plan="a[red]b")], [], [], Console(file=text))
    assert "a[red]b" in text.getvalue()


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("reason: because", "because: so", "entries.yaml:3:5: groups: want a field reason; got none"),
        ("reason: because", "because: so", 'entries.yaml:8:5: groups: no field named because'),
        ('["6.1", "6.12"]', '["6.1"]', "entries.yaml:4:14: groups: between: want two kernels"),
        ("expected", "good", "entries.yaml:7:12: groups: label: want one of regression, unknown, improvement"),
        ("bug: one", "bug: two", "entries.yaml:10:10: groups: bug: want a name of the corpus; got two"),
        ("{hosts.cc: [cubic, reno]}", "cubic", "entries.yaml:6:13: groups: tuples: want entity.parameter: value"),
        ("groups:", "entries:", "want a field groups; got none"),
    ],
)  # fmt: skip
def test_a_wrong_entry_has_its_place(tmp_path: Path, old: str, new: str, error: str) -> None:
    with pytest.raises(PlanError) as caught:
        entries(tmp_path, ENTRY.replace(old, new))
    assert error in str(caught.value)


def test_the_pages_need_no_server_and_hold_what_a_plan_says_as_text(tmp_path: Path) -> None:
    found = points(tmp_path, {"a0": LATER, "a3": []})
    for run in found.runs:
        (run.path / REPORT).write_text("a report")
    known = entries(tmp_path, ENTRY.replace("because", "'<script>alert(1)</script>'"))
    out = tmp_path / "site"
    check_out(out)
    page = write_site([found], grouped([found]), known, out).read_text(encoding="utf-8")
    assert "src=" not in page
    assert "<link" not in page
    assert page.count("<script>") == 1
    assert {file.name for file in out.iterdir()} == {"index.html", "releases.json", "old.html", "new.html"}
    assert 'href="new.html#/run/new/point/a0"' in page
    written = json.loads((out / "releases.json").read_text(encoding="utf-8"))
    assert written["plans"][0] | {"runs": []} == {
        "plan": "p", "between": ["6.1", "6.12"], "runs": [], "same": 2, "differ": 2, "only_old": [], "only_new": [],
    }  # fmt: skip
    check_out(out)  # once more
    write_site([found], grouped([found]), [], out)


def test_a_directory_of_something_else_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for out in (tmp_path, tmp_path / "mine"):
        with pytest.raises(PlanError, match="want a new directory, or one of an earlier testctl releases"):
            check_out(out)
