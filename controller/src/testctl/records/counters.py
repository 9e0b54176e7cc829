# SPDX-License-Identifier: Apache-2.0
"""What the counters of an entity counted while a point ran: after less before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testctl_agent.spec.untrusted import misfit
from testctl_agent.wire.results import COUNTERS_FILE, P4_STATE_FILE

from testctl.records.errors import RecordsError
from testctl.records.files import find_file, read_object

COUNTED = {**COUNTERS_FILE, "program?": P4_STATE_FILE}
"""What read_counters returns of an entity."""
_LEVELS = ("backlog", "qlen")  # a state, not a count: the value after
_NAMES = ("device", "kind", "handle", "parent")


def read_counters(entity: Path) -> dict[str, Any]:
    """Differences of counters_before.json and counters_after.json in a directory; {} if there are none.

    Returns {"snmp": {name: n}, "device": {device: {name: n}}, "qdisc": [{"device", "kind",
    "handle", "parent", "bytes", …, "extra"}], "program": {"registers", "counters"}}; `backlog` and `qlen` are those
    after, and `program`, of a switch with one of the user's, is p4_state.json.  Raises RecordsError.
    """
    before, after = find_file(entity, "counters_before.json"), find_file(entity, "counters_after.json")
    if before is None or after is None:
        return {}
    counted = [read_object(path) for path in (before, after)]
    for path, document in zip((before, after), counted, strict=True):
        if why := misfit(document, COUNTERS_FILE):
            raise RecordsError(path, why)
    return difference(*counted) | _program(entity)


def _program(entity: Path) -> dict[str, Any]:
    path = find_file(entity, "p4_state.json")
    if path is None:
        return {}
    if why := misfit(held := read_object(path), P4_STATE_FILE):
        raise RecordsError(path, why)
    return {"program": held}


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """`after` less `before`; what was not there before counts from 0."""
    old = {tuple(q.get(n, "") for n in _NAMES): q for q in before.get("qdisc", [])}
    return {
        "snmp": _less(before.get("snmp", {}), after.get("snmp", {})),
        "device": {d: _less(before.get("device", {}).get(d, {}), c) for d, c in after.get("device", {}).items()},
        "qdisc": [_less(old.get(tuple(q.get(n, "") for n in _NAMES), {}), q) for q in after.get("qdisc", [])],
    }


def _less(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in after.items():
        if isinstance(value, Mapping):
            old = before.get(name, {})
            out[name] = _less(old if isinstance(old, Mapping) else {}, value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and name not in _LEVELS:
            old = before.get(name, 0)
            out[name] = value - (old if isinstance(old, int | float) else 0)
        else:
            out[name] = value
    return out
