# SPDX-License-Identifier: Apache-2.0
"""p4c's simple test framework: what a .stf file says, one statement a line.

Source of the grammar: p4c, tools/stf/stf_parser.py, and what backends/bmv2/bmv2stf.py adds for simple_switch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


class StfError(Exception):
    """A statement that is not understood, with its line."""


@dataclass(frozen=True)
class Statement:
    """op: the command; words: what follows it (a packet's or expectation's data is one word, without spaces).

    For add and setdefault: table, keys, action, params; of an add, `label` is what it calls its entry.
    """

    line: int
    op: str
    words: tuple[str, ...] = ()
    table: str = ""
    priority: int = 0
    keys: tuple[tuple[str, str], ...] = ()
    action: str = ""
    params: tuple[tuple[str, str], ...] = ()
    label: str = ""


_CALL = re.compile(r"(?P<action>[\w.$]+)\s*\((?P<params>[^)]*)\)\s*(?:=\s*(?P<label>[\w$]+))?\s*$")
_COUNTER = re.compile(r"([\w.$]+)\s*\(\s*([\w$]+)\s*\)\s*(?:(packets|bytes)\s*(==|!=|<=|<|>=|>)\s*(\w+))?\s*$", re.I)
_NAME = re.compile(r'"[^"]*"|\S+')
_PLAIN = {
    "mirroring_add", "mirroring_add_mc", "mirroring_delete", "mirroring_get", "mc_mgrp_create", "mc_node_create",
    "mc_node_update", "mc_node_associate", "counter_read", "counter_write", "register_read", "register_write",
    "register_reset", "meter_get_rates", "meter_set_rates", "meter_array_set_rates", "wait", "remove", "no_packet",
}  # fmt: skip


def number(text: str) -> int:
    """Decimal, 0x or 0b."""
    return int(text, 0) if text[:2].lower() in ("0x", "0b", "0o") else int(text)


def _pairs(text: str, split: str) -> tuple[tuple[str, str], ...]:
    found = []
    for one in re.split(split, text.strip()):
        name, colon, value = one.strip().rpartition(":")
        if not colon:
            raise ValueError(f"want name:value; got {one!r}")
        found.append((name.strip().strip('"'), value.strip()))
    return tuple(found)


def _entry(line: int, op: str, rest: str) -> Statement:
    called = _CALL.search(rest)
    if called is None:
        raise ValueError("want an action and its parameters in parentheses")
    params = _pairs(called["params"], ",") if called["params"].strip() else ()
    head = re.sub(r"\s*:\s*", ":", rest[: called.start()].strip())
    table, *keys = _NAME.findall(head)
    priority = 0
    if keys and keys[0].isdigit():
        priority = int(keys.pop(0))
    return Statement(
        line, op, (), table.strip('"'), priority, _pairs(" ".join(keys), r"\s+") if keys else (),
        called["action"], params, called["label"] or "",
    )  # fmt: skip


def _statement(line: int, text: str) -> Statement:
    op, _, rest = text.partition(" ")
    op = op.lower()
    if op in ("add", "setdefault"):
        return _entry(line, op, rest)
    if op in ("packet", "expect"):
        port, *data = rest.split()
        return Statement(line, op, (str(number(port)), "".join(data).upper()))
    if op == "check_counter":
        asked = _COUNTER.match(rest.strip())
        if asked is None:
            raise ValueError("want NAME(INDEX) and a condition")
        return Statement(line, op, tuple(one or "" for one in asked.groups()))
    if op in _PLAIN:
        return Statement(line, op, tuple(rest.split()))
    raise ValueError(f"no command {op!r}")


def parse(text: str) -> Sequence[Statement]:
    found = []
    for line, raw in enumerate(text.splitlines(), 1):
        said = raw.partition("#")[0].replace("\t", " ").strip()
        if said:
            try:
                found.append(_statement(line, said))
            except ValueError as error:
                raise StfError(f"line {line}: {error}") from error
    return found
