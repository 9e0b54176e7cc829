# SPDX-License-Identifier: Apache-2.0
"""The parts of a dashboard and their JSON for Grafana: panels on a grid, their queries, variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SCHEMA = 39
"""Schema version of Grafana 11's JSON; later versions migrate it."""

WIDTH = 24
"""Columns of Grafana's grid."""

UNITS = {
    "": "none",
    "ns": "ns",
    "s": "s",
    "ms": "ms",
    "µs": "µs",
    "bit/s": "bps",
    "B": "decbytes",
    "packets": "short",
    "requests/s": "reqps",
}
"""Grafana's name of each unit that a metric has."""

_OTHERS = {
    "title": "testctl",
    "type": "dashboards",
    "tags": ["testctl"],
    "icon": "external link",
    "tooltip": "",
    "asDropdown": True,
    "includeVars": False,
    "keepTime": False,
    "targetBlank": False,
}
"""A link to the other dashboards."""

SOURCE = {"type": "influxdb", "uid": "${datasource}"}


@dataclass(frozen=True)
class Panel:
    """A figure or table.

    query      InfluxQL, with Grafana's variables
    alias      the name of a line or number (`named_by`); "" is the measurement, the field and all tags
    kind       timeseries, table or stat
    overrides  of `defaults`, for some fields
    options    further fields of the panel's JSON
    """

    title: str
    query: str
    alias: str = ""
    kind: str = "timeseries"
    unit: str = ""
    help: str = ""
    width: int = 8
    height: int = 7
    interval: str = ""
    defaults: Json = field(default_factory=dict)
    overrides: Sequence[Json] = ()
    options: Json = field(default_factory=dict)

    def to_json(self, number: int, left: int, top: int) -> Json:
        shown = "table" if self.kind == "table" else "time_series"
        asked = {"datasource": SOURCE, "query": self.query, "rawQuery": True, "refId": "A", "resultFormat": shown}
        if self.alias:
            asked["alias"] = self.alias
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            **({"description": self.help} if self.help else {}),
            "datasource": SOURCE,
            "gridPos": {"x": left, "y": top, "w": self.width, "h": self.height},
            **({"interval": self.interval} if self.interval else {}),
            "fieldConfig": {"defaults": {"unit": UNITS[self.unit], **self.defaults}, "overrides": list(self.overrides)},
            "options": self.options,
            "targets": [asked],
        }


def override(name: str, property: str, value: object) -> Json:
    """A property of the field, line or number of a name."""
    return {"matcher": {"id": "byName", "options": name}, "properties": [{"id": property, "value": value}]}


@dataclass(frozen=True)
class Row:
    """Panels under a heading; a closed row sends no queries until it is opened."""

    title: str
    panels: Sequence[Panel]
    closed: bool = False


@dataclass(frozen=True)
class Variable:
    """A choice at the head of a dashboard: the results of a query.

    every  "All" is a choice, and the default
    only   regular expression: which results are offered
    first  the default; "": the first result
    """

    name: str
    label: str
    query: str
    every: bool = False
    only: str = ""
    first: str = ""

    def to_json(self) -> Json:
        more: Json = {}
        if self.every:
            more = {"includeAll": True, "allValue": ".*", "multi": True, "current": _current(["All"], ["$__all"])}
        elif self.first:
            more = {"current": _current(self.first, self.first)}
        return {
            "name": self.name,
            "label": self.label,
            "type": "query",
            "datasource": SOURCE,
            "query": self.query,
            "refresh": 2,
            "regex": self.only,
            "sort": 1,
            **more,
        }


def _current(text: object, value: object) -> Json:
    return {"selected": True, "text": text, "value": value}


@dataclass(frozen=True)
class Annotation:
    """Marks over all figures: times from a query, with the columns of their text and tags."""

    name: str
    query: str
    text: str
    tags: str

    def to_json(self) -> Json:
        return {
            "name": self.name,
            "datasource": SOURCE,
            "enable": True,
            "iconColor": "orange",
            "target": {
                "refId": "Anno",
                "query": self.query,
                "queryType": "tags",
                "fromAnnotations": True,
                "textColumn": self.text,
                "tagsColumn": self.tags,
            },
        }


@dataclass(frozen=True)
class Board:
    """A dashboard; `rows` is called when it is generated, because it reads the metrics' specs."""

    title: str
    help: str
    rows: Callable[[], Sequence[Row]]
    variables: Sequence[Variable] = ()
    annotations: Sequence[Annotation] = ()
    since: str = "now-30d"

    def to_json(self, name: str) -> Json:
        source = {"name": "datasource", "label": "InfluxDB", "type": "datasource", "query": "influxdb", "refresh": 1}
        return {
            "uid": f"testctl-{name}",
            "title": self.title,
            "description": self.help,
            "tags": ["testctl"],
            "schemaVersion": SCHEMA,
            "editable": False,
            "graphTooltip": 1,
            "timezone": "utc",
            "time": {"from": self.since, "to": "now"},
            "templating": {"list": [source, *(variable.to_json() for variable in self.variables)]},
            "annotations": {"list": [annotation.to_json() for annotation in self.annotations]},
            "links": [_OTHERS],
            "panels": _placed(self.rows()),
        }


def _placed(rows: Sequence[Row]) -> list[Json]:
    """The rows' panels from left to right, the rows one below the other."""
    made: list[Json] = []
    number, top = 0, 0
    for row in rows:
        number += 1
        head: Json = {"id": number, "type": "row", "title": row.title, "collapsed": row.closed, "panels": []}
        made.append({**head, "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1}})
        top += 1
        left, highest = 0, 0
        for panel in row.panels:
            if left + panel.width > WIDTH:
                left, top, highest = 0, top + highest, 0
            number += 1
            (made[-1]["panels"] if row.closed else made).append(panel.to_json(number, left, top))
            left, highest = left + panel.width, max(highest, panel.height)
        top += highest
    return made
