# SPDX-License-Identifier: Apache-2.0
"""What Grafana asks of InfluxDB for a dashboard: its queries, with the variables put in as Grafana does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Choices = Mapping[str, str | list[str]]
EVERY = "$__all"

_VARIABLE = re.compile(r"\$\{(\w+)(?::(\w+))?\}")
_SPECIAL = re.compile(r"[\\^$*+?.()|\[\]{}/]")


@dataclass(frozen=True)
class Asked:
    """A query and the place in the dashboard that has it."""

    where: str
    query: str


@dataclass(frozen=True)
class Window:
    """The dashboard's range of time, ns, and the step that Grafana would choose for its width in pixels."""

    start_ns: int
    end_ns: int
    interval: str


def board(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def panels(of: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All panels, those of closed rows too."""
    for panel in of["panels"]:
        yield panel
        yield from panels({"panels": panel.get("panels", ())})


def queries(of: Mapping[str, Any]) -> Iterator[Asked]:
    """The queries of panels and annotations."""
    for panel in panels(of):
        for target in panel.get("targets", ()):
            assert target["rawQuery"] is True
            yield Asked(f"{of['title']}: {panel['title']} {target['refId']}", target["query"])
    for annotation in of["annotations"]["list"]:
        asked = annotation["target"]
        assert asked["fromAnnotations"] is True, "Grafana sends no query of an annotation without"
        yield Asked(f"{of['title']}: annotation {annotation['name']}", asked["query"])


def variables(of: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those that a query fills, in order."""
    return [one for one in of["templating"]["list"] if one["type"] == "query"]


def filled(query: str, choices: Choices, window: Window) -> str:
    """A query as Grafana sends it."""

    def value(match: re.Match[str]) -> str:
        chosen, form = choices[match[1]], match[2]
        if chosen == EVERY:
            return ".*"  # allValue is put in as it is
        if form == "raw":
            assert isinstance(chosen, str), f"{match[0]}: one value, not several"
            return chosen
        assert form == "regex", f"{match[0]}: how is it to be put into InfluxQL?"
        escaped = [_SPECIAL.sub(r"\\\g<0>", one) for one in ([chosen] if isinstance(chosen, str) else chosen)]
        return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"

    text = _VARIABLE.sub(value, query)
    first, last = window.start_ns // 10**6, -(-window.end_ns // 10**6)
    text = text.replace("$timeFilter", f"time >= {first}ms and time <= {last}ms").replace(
        "$__interval", window.interval
    )
    assert not re.search(r"\$\w|\$\{|\[\[", text), f"a variable that Grafana does not know: {text}"
    return text
