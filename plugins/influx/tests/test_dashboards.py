# SPDX-License-Identifier: Apache-2.0
"""Dashboards are current and well formed, and the roles put them and their database where they belong."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import jinja2
import pytest
import yaml
from testctl.charts.style import VERDICT_LOOKS
from testctl.curves import curves
from testctl.metrics import metric_names
from testctl_influx.generate import files
from testctl_influx.grafana import dashboards
from testctl_influx.grafana.model import UNITS
from testctl_influx.measurements import MEASUREMENTS

from plugins.influx.tests.grafana import board, panels, queries, variables
from plugins.influx.tests.influxd import PROGRAM, REASON, Influxd, running
from tests.playbooks import ROLES, ROOT, Done, play_here

BOARDS = sorted((ROOT / "dashboards").glob("*.json"))


def test_the_committed_files_are_those_that_are_made() -> None:
    made = files()
    committed = [*BOARDS, ROOT / "docs" / "reference" / "influxdb.md"]
    assert {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in committed} == made, "make gen"
    assert {path.stem: board(path) for path in BOARDS} == dashboards()


def test_every_unit_of_a_metric_has_grafanas_name() -> None:
    assert {info.unit for info in metric_names().values()} <= UNITS.keys()


def test_every_metric_is_in_the_dashboards() -> None:
    def named(name: str) -> set[str]:
        text = "\n".join(one.query for one in queries(board(ROOT / "dashboards" / name)))
        return set(re.findall(r'"(\w+)"', text))

    assert {name for name, info in metric_names().items() if not info.text} <= named("plan.json")
    assert set(metric_names()) <= named("point.json")


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_panels_have_their_own_number_and_place(path: Path) -> None:
    found = board(path)
    assert found["uid"] == f"testctl-{path.stem}"
    numbers = [panel["id"] for panel in panels(found)]
    assert len(numbers) == len(set(numbers))
    for together in [found["panels"], *(row["panels"] for row in found["panels"] if row.get("panels"))]:
        taken: set[tuple[int, int]] = set()
        for panel in together:
            place = panel["gridPos"]
            assert 0 <= place["x"] <= place["x"] + place["w"] <= 24
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            taken |= cells


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_variable_is_chosen_before_it_is_used(path: Path) -> None:
    known: set[str] = set()
    for one in variables(board(path)):
        assert set(re.findall(r"\$\{(\w+)", one["query"])) <= known
        known.add(one["name"])
    for asked in queries(board(path)):
        assert set(re.findall(r"\$\{(\w+)", asked.query)) <= known, asked.where


def graphs(of: dict[str, Any]) -> list[dict[str, Any]]:
    """The panels that draw lines or bars."""
    return [panel for panel in panels(of) if panel["type"] == "timeseries"]


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_line_is_named_by_what_tells_it_from_others(path: Path) -> None:
    """Without a name of its own a line has the measurement, the field and all tags as one."""
    for panel in graphs(board(path)):
        (asked,) = panel["targets"]
        picked, _, rest = asked["query"].partition(" FROM ")
        tags = re.findall(r'"([^"]+)"', rest.partition("GROUP BY")[2])
        assert re.findall(r"\[\[tag_([^]]+)\]\]", asked["alias"]) == tags, panel["title"]
        assert ("$col" in asked["alias"]) == (picked.count(" AS ") > 1 or not tags), panel["title"]


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_columns_name_and_its_time_can_be_read(path: Path) -> None:
    """Grafana's columns are 150 pixels wide or more; a name that needs more is cut off at its begin."""
    for panel in panels(board(path)):
        if panel["type"] != "table":
            continue
        picked = panel["targets"][0]["query"].partition(" FROM ")[0]
        widths = {
            one["matcher"]["options"]: prop["value"]
            for one in panel["fieldConfig"]["overrides"]
            for prop in one["properties"]
            if prop["id"] in ("custom.width", "custom.minWidth")
        }
        assert widths["Time"] >= 180
        for name in re.findall(r'"([^"]+)"', picked):
            assert widths.get(name, 150) >= 8 * len(name) + 16, name


def test_verdicts_have_the_reports_colours() -> None:
    shown = [panel for panel in panels(board(ROOT / "dashboards" / "overview.json")) if "by verdict" in panel["title"]]
    assert len(shown) == 2
    for panel in shown:
        (asked,) = panel["targets"]
        assert asked["alias"] == "$col", "names are those of the colours"
        colours = {one["matcher"]["options"]: one["properties"] for one in panel["fieldConfig"]["overrides"]}
        wanted = {name: {"mode": "fixed", "fixedColor": look.colour} for name, look in VERDICT_LOOKS.items()}
        assert colours == {name: [{"id": "color", "value": colour}] for name, colour in wanted.items()}


def test_a_change_is_red_where_it_is_worse() -> None:
    """By the value of each bar, not of the last one; nothing is worse or better where nothing changed."""
    for panel in graphs(board(ROOT / "dashboards" / "nightly.json")):
        if not panel["title"].endswith(", change"):
            continue
        look = panel["fieldConfig"]["defaults"]
        assert (look["color"], look["custom"]["gradientMode"]) == ({"mode": "thresholds"}, "scheme")
        assert look["custom"]["lineWidth"] == 0, "a line at 0 would be red or green"
        below, same, above = look["thresholds"]["steps"]
        assert below["value"] is None
        assert same["value"] < 0 < above["value"]
        better = metric_names()[panel["title"].removesuffix(", change")].better
        assert [below["color"], above["color"]] == (["red", "green"] if better == "higher" else ["green", "red"])
        assert same["color"] not in ("red", "green")


def test_series_are_drawn_as_their_curves_say() -> None:
    found = {panel["targets"][0]["query"]: panel for panel in graphs(board(ROOT / "dashboards" / "point.json"))}
    for name, curve in curves().items():
        drawn = [panel for query, panel in found.items() if f'FROM "series_{name}"' in query]
        for panel in drawn:
            look, query = panel["fieldConfig"]["defaults"], panel["targets"][0]["query"]
            assert (look["custom"]["lineInterpolation"] == "stepAfter") == (curve.spec.shape == "steps")
            assert look.get("min") == (0 if curve.spec.zero else None)
            assert ('"flow"' in query.partition("GROUP BY")[2]) == (not curve.spec.whole), "a line for each flow"
        assert bool(drawn) == (f"series_{name}" in MEASUREMENTS)


def playbook(where: Path, role: str, tasks: str, plays: list[dict[str, Any]], *more: str) -> Done:
    """Play some tasks of a role on this machine, once with each of some words."""
    task = {"ansible.builtin.include_role": {"name": role, "tasks_from": tasks}}
    return play_here(where, [{"tasks": [task], "vars": own} for own in plays], *more)


def changed(where: Path, role: str, tasks: str, plays: list[dict[str, Any]], *more: str) -> int:
    """How many of the tasks have changed something."""
    done = playbook(where, role, tasks, plays, *more)
    assert done.code == 0, done.said
    return done.changed["localhost"]


@pytest.mark.root
def test_grafana_is_provisioned_once(tmp_path: Path) -> None:
    words = {
        "grafana_config": str(tmp_path / "etc"),
        "grafana_dashboards": str(tmp_path / "boards"),
        "grafana_checkout": str(ROOT),
        "grafana_group": "root",
        "grafana_influxdb_url": "http://db:8086",
        "grafana_influxdb_user": "reader",
        "grafana_influxdb_password": 'a"b: c',
    }
    (tmp_path / "etc").mkdir()
    assert changed(tmp_path, "grafana", "provision", [words], "--check") == 4
    assert list((tmp_path / "etc").iterdir()) == [], "a dry run"
    assert changed(tmp_path, "grafana", "provision", [words, words]) == 4, "nothing the second time"
    folder = tmp_path / "etc" / "provisioning"
    source = folder / "datasources" / "testctl.yaml"
    assert source.stat().st_mode & 0o777 == 0o640, "it holds a password"
    (made,) = yaml.safe_load(source.read_text(encoding="utf-8"))["datasources"]
    assert (made["url"], made["user"], made["secureJsonData"]) == ("http://db:8086", "reader", {"password": 'a"b: c'})
    (provider,) = yaml.safe_load((folder / "dashboards" / "testctl.yaml").read_text(encoding="utf-8"))["providers"]
    there = Path(provider["options"]["path"])
    assert {path.name: path.read_bytes() for path in there.iterdir()} == {
        path.name: path.read_bytes() for path in BOARDS
    }


def test_influxd_takes_the_units_settings() -> None:
    """What the unit says in the environment is what the server says of itself."""
    if PROGRAM is None:
        pytest.skip(REASON)
    role = ROLES / "influxdb"
    known = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8")) | {"influxdb_port": 12345}
    known |= {"influxdb_password": "secret"}
    unit = jinja2.Template((role / "templates" / "unit.conf.j2").read_text(encoding="utf-8")).render(known)
    said = dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.MULTILINE))
    assert len(said) == 4
    done = subprocess.run([PROGRAM, "config"], capture_output=True, text=True, check=True, env=os.environ | said)
    for words in (
        'bind-address = "127.0.0.1:12345"',
        'index-version = "tsi1"',
        "reporting-enabled = false",
        "auth-enabled = true",
    ):
        assert words in done.stdout


def test_the_database_is_made_once_and_its_retention_follows(tmp_path: Path, server: Influxd) -> None:
    words = {"influxdb_port": httpx.URL(server.url).port, "influxdb_database": "runs", "influxdb_retention": "52w"}

    def kept() -> list[str]:
        return [row["duration"] for row in server.rows('SHOW RETENTION POLICIES ON "runs"')]

    assert changed(tmp_path, "influxdb", "database", [words, words]) == 1, "nothing the second time"
    assert kept() == ["8736h0m0s"]
    assert server.write("m x=1", "runs").status_code == 204
    assert changed(tmp_path, "influxdb", "database", [words | {"influxdb_retention": "1d"}]) == 1
    assert kept() == ["24h0m0s"]
    assert server.rows("SELECT * FROM m", "runs") != [], "what was there is there"


def test_strangers_do_not_use_a_database_that_has_a_password(tmp_path: Path) -> None:
    words = {"influxdb_database": "runs", "influxdb_password": "a b%c#"}
    with running(tmp_path, ("testctl", "a b%c#")) as server:
        words |= {"influxdb_port": httpx.URL(server.url).port}
        assert changed(tmp_path, "influxdb", "database", [words, words]) == 2, "user and database, once"
        assert server.write("m x=1", "runs").status_code == 204
        for query in ("DROP DATABASE runs", "SELECT * FROM m"):
            for auth in (None, ("testctl", "wrong")):
                answer = httpx.post(f"{server.url}/query", params={"q": query, "db": "runs"}, auth=auth)
                assert answer.status_code == 401
        assert server.rows("SELECT * FROM m", "runs") != []


def test_another_password_than_the_users_is_told(tmp_path: Path) -> None:
    with running(tmp_path, ("testctl", "first")) as server:
        words = {"influxdb_port": httpx.URL(server.url).port, "influxdb_password": "first"}
        changed(tmp_path, "influxdb", "database", [words])
        done = playbook(tmp_path, "influxdb", "database", [words | {"influxdb_password": "second"}])
    assert done.code == 2, done.said
    assert "want influxdb_password to be that of user testctl" in done.in_one_line
    assert "second" not in done.said


def test_a_database_for_the_network_wants_a_password(tmp_path: Path) -> None:
    words = {"influxdb_address": "192.0.2.1", "ansible_facts": {"service_mgr": "systemd"}}
    done = playbook(tmp_path, "influxdb", "main", [words], "--check")
    assert done.code == 2, done.said
    assert "want influxdb_password" in done.said
