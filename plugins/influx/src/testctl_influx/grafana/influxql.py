# SPDX-License-Identifier: Apache-2.0
"""InfluxQL with Grafana's variables: common parts of the dashboards' queries.

`${name:regex}` is a choice (or several) escaped for a regular expression; `All` is `.*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from testctl_influx.grafana.model import Json, Panel, Variable, override

_MOST_ROWS = 500
_COLUMN_PX, _TIME_PX = 150, 190
"""Grafana's narrowest column; a time with ms."""
_CHARACTER_PX, _MARGIN_PX = 8, 30
"""Of a column's name."""


def chosen(*names: str) -> str:
    """A condition: each of these tags has a value of the variable of the same name."""
    return " AND ".join(f'"{name}" =~ /^${{{name}:regex}}$/' for name in names)


def over_time(values: Iterable[str], measurement: str, where: str, by: Iterable[str] = ()) -> str:
    """Values in steps of Grafana's $__interval, a line for each value of the tags `by`."""
    grouped = ", ".join(["time($__interval)", *(f'"{tag}"' for tag in by)])
    return (
        f'SELECT {", ".join(values)} FROM "{measurement}" WHERE {where} AND $timeFilter GROUP BY {grouped} fill(none)'
    )


def named_by(*tags: str, field: bool = False) -> str:
    """The alias of an `over_time`: the values of tags, after the name of the field where there are several."""
    return " ".join([*(["$col"] if field else []), *(f"[[tag_{tag}]]" for tag in tags)])


def table(
    title: str,
    columns: Iterable[str],
    measurement: str,
    where: str,
    *,
    width: int = 24,
    height: int = 9,
    help: str = "",
    defaults: Json | None = None,
    widths: Mapping[str, int] | None = None,
) -> Panel:
    """The newest records as rows; columns are names, with the suffix ::tag for tags; widths in pixels, of some."""
    columns = list(columns)
    picked = ", ".join('"{}"{}{}'.format(*column.partition("::")) for column in columns)
    query = f'SELECT {picked} FROM "{measurement}" WHERE {where} AND $timeFilter ORDER BY time DESC LIMIT {_MOST_ROWS}'
    names = [column.partition("::")[0] for column in columns]
    needed = {"Time": _TIME_PX} | {name: _CHARACTER_PX * len(name) + _MARGIN_PX for name in names}
    sized = [override(name, "custom.width", pixels) for name, pixels in (widths or {}).items()] + [
        override(name, "custom.minWidth", pixels) for name, pixels in needed.items() if pixels > _COLUMN_PX
    ]
    return Panel(
        title, query, kind="table", help=help, width=width, height=height, defaults=defaults or {}, overrides=sized
    )


def values_of(tag: str, measurement: str, label: str, *before: str, every: bool = False) -> Variable:
    """A variable: the values of a tag, given the choices `before` it."""
    where = f" WHERE {chosen(*before)}" if before else ""
    return Variable(tag, label, f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "{tag}"{where}', every=every)
