# SPDX-License-Identifier: Apache-2.0
"""What a document may leave out, or write in an older way, filled in as BMv2 takes it.

Source: behavioral-model, src/bm_sim/P4Objects.cpp.  What is of another type than it should be is left as it is: who
reads it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

CORE_ERRORS = (
    "NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout",
    "ParserInvalidArgument",
)  # fmt: skip
VALUE_SET_SIZE = 1024
"""Of a value set without `max_size`: BMv2 has no limit."""
_ARRAYS = (
    "header_types", "headers", "errors", "parsers", "parse_vsets", "deparsers", "actions", "pipelines", "checksums",
    "calculations",
)  # fmt: skip


def complete(root: dict[str, Any]) -> None:
    """Change a document to what p4c writes today."""
    _set(root, _ARRAYS, __meta__={"version": [2, 0]})
    _errors(root)
    for one in _objects(root, "header_types"):
        _set(one, ("fields",))
    for one in _objects(root, "headers"):
        _set(one, metadata=False)
    _multicast(root)
    for one in _objects(root, "parsers"):
        for state in _objects(one, "parse_states"):
            _parse_state(state)
    for one in _objects(root, "parse_vsets"):
        _set(one, max_size=VALUE_SET_SIZE)
    for one in _objects(root, "actions"):
        _set(one, ("runtime_data", "primitives"))
        for primitive in _objects(one, "primitives"):
            _set(primitive, ("parameters",))
    for one in _objects(root, "field_lists"):
        _set(one, ("elements",))
    for one in (*_objects(root, "counter_arrays"), *_objects(root, "meter_arrays")):
        _set(one, is_direct=False)
    for one in _objects(root, "pipelines"):
        _pipeline(root, one)


def _set(one: dict[str, Any], arrays: Sequence[str] = (), **others: Any) -> None:
    """Members that are missing or null: empty arrays, and others."""
    for name, value in {**{name: [] for name in arrays}, **others}.items():
        if one.get(name) is None:
            one[name] = value


def _objects(one: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The objects of an array."""
    return (each for each in _array(one, name) if isinstance(each, dict))


def _array(one: dict[str, Any], name: str) -> list[Any]:
    """An array of it; an empty one for what is none."""
    found = one.get(name)
    return found if isinstance(found, list) else []


def _errors(root: dict[str, Any]) -> None:
    """Those of core.p4 are there in any case."""
    given = root["errors"]
    if not isinstance(given, list) or not all(
        isinstance(one, list) and len(one) == 2 and isinstance(one[1], int) for one in given
    ):
        return
    names, free = [one[0] for one in given], max((one[1] for one in given), default=-1) + 1
    missing = [name for name in CORE_ERRORS if name not in names]
    root["errors"] = given + [[name, free + place] for place, name in enumerate(missing)]


def _multicast(root: dict[str, Any]) -> None:
    """standard_metadata.mcast_grp, which stays 0 where neither it nor that of P4-14's intrinsic_metadata is there."""
    types = {str(one.get("name")): one for one in _objects(root, "header_types")}
    kinds = {str(one.get("name")): types.get(str(one.get("header_type")), {}) for one in _objects(root, "headers")}
    names = [
        field[0]
        for owner in ("standard_metadata", "intrinsic_metadata")
        for field in _array(kinds.get(owner, {}), "fields")
        if isinstance(field, list) and field
    ]
    fields = kinds.get("standard_metadata", {}).get("fields")
    if isinstance(fields, list) and "mcast_grp" not in names:
        fields.append(["mcast_grp", 16])


def _parse_state(state: dict[str, Any]) -> None:
    _set(state, ("parser_ops", "transition_key", "transitions"))
    for one in _objects(state, "transitions"):
        _set(one, type="hexstr")
        if one["type"] == "hexstr" and one.get("value") == "default":
            one["type"] = "default"
    for one in _objects(state, "parser_ops"):
        given = one.get("parameters")
        if one.get("op") == "verify" and isinstance(given, list) and len(given) == 2 and isinstance(given[1], int):
            given[1] = {"type": "hexstr", "value": hex(given[1])}


def _pipeline(root: dict[str, Any], pipeline: dict[str, Any]) -> None:
    _set(pipeline, ("tables", "conditionals", "action_calls", "action_profiles"))
    numbers: dict[Any, Any] = {}
    for one in _objects(root, "actions"):
        if isinstance(one.get("name"), str):
            numbers.setdefault(one["name"], one.get("id"))
    for one in _objects(pipeline, "tables"):
        entries, names = one.get("entries"), one.get("actions")
        if isinstance(entries, list):
            _set(one, max_size=max(len(entries), 1))
        if "action_ids" not in one and isinstance(names, list):
            one["action_ids"] = [numbers.get(name) if isinstance(name, str) else None for name in names]
        _set(one, ("key",), next_tables={})
        for key in _objects(one, "key"):
            target = key.get("target")  # of the match type `valid` a header's name, else [header, field]
            _set(key, name=".".join(map(str, target)) if isinstance(target, list) else target)
        profile = one.get("act_prof_name")
        if profile is not None and "action_profile" not in one and isinstance(pipeline["action_profiles"], list):
            one["action_profile"] = profile
            own = {"name": profile, "id": one.get("id"), "max_size": one.get("max_size")}
            pipeline["action_profiles"].append(own | ({"selector": one["selector"]} if "selector" in one else {}))
    for one in _objects(pipeline, "conditionals"):
        if "true_next" in one or "false_next" in one:
            one.setdefault("true_next", None)
            one.setdefault("false_next", None)
    for one in _objects(pipeline, "action_calls"):
        one.setdefault("next_node", None)
