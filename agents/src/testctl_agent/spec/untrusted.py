# SPDX-License-Identifier: Apache-2.0
"""Validation of untrusted data (from an agent, a worker, a run of another user): JSON, its shape, and texts to show.

Light to import: in the lab this runs inside the virtual time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any

MAX_DEPTH = 100
"""Levels of lists and objects; the project's own files have fewer than 20, and the recursion limit is near 1000."""
LARGEST = 2**63
"""Integers are below this, as they are on the wire and in columns of records."""

Shape = Any
"""int, float (a finite number), str, bool, None, object (anything).  A tuple of these: any of them, the usual one
first.  [shape]: a list; [shape, shape]: a list of two.  {"name": shape, "optional?": shape}: an object, which may have
other names too."""


@dataclass(frozen=True)
class Named:
    """An object whose values all have one shape, whatever their names are."""

    of: Shape


_CONTROL = {code: "�" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
_TURNING = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "�")
_SHOWN = _CONTROL | _TURNING
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
SUSPECT = re.compile(r"\\(?:u(?:00|20|d[89a-f])|[bfr])|[\x7f-\x9f\u202a-\u202e\u2066-\u2069]", re.IGNORECASE)
"""Matches JSON text that words() may change; control characters in JSON are always escapes."""


def words(text: str) -> str:
    """The text without terminal controls: C0, C1, DEL and bidirectional overrides become U+FFFD; line ends stay."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_SHOWN)


def loads(text: str | bytes) -> Any:
    """Parse untrusted JSON and apply words() to all texts.

    Raises ValueError for invalid JSON, too deep nesting, NaN or a lone surrogate.
    """
    try:
        value = json.loads(text, parse_constant=_refused)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "replace")
    if _too_deep(value):
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    if SUSPECT.search(text):
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()  # raises for one without its other half
        return cleaned(value)
    return value


def misfit(value: Any, shape: Shape, name: str = "") -> str:
    """Why a value does not have a shape: "want … at a.b[0]; got …"; "" if it has."""
    if _fits(value, shape):  # nearly all do: a file of metrics has hundreds, a run ten thousand of these
        return ""
    if isinstance(shape, tuple):
        wrong = [misfit(value, item, name) for item in shape]
        return "" if "" in wrong else wrong[0]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _want("a list", name, value)
        if len(shape) > 1 and len(value) != len(shape):
            return _want(f"a list of {len(shape)}", name, len(value))
        of = enumerate(zip(value, cycle(shape), strict=False))
        return next((why for number, (item, own) in of if (why := misfit(item, own, f"{name}[{number}]"))), "")
    if isinstance(shape, dict | Named):
        return _misfit_object(value, shape, name)
    what = {None: "null", int: "an integer of 64 bits", float: "a finite number", str: "a text", bool: "true or false"}
    return _want(what[shape], name, value)


def _fits(value: Any, shape: Shape) -> bool:
    """Whether a value has a shape; of lists and objects not looked at, which misfit() does."""
    if shape is str or shape is bool:
        return isinstance(value, shape)
    if shape is float:
        return (isinstance(value, float) or _is_int(value)) and _finite(value)
    if shape is int:
        return _is_int(value) and -LARGEST <= value < LARGEST
    if isinstance(shape, tuple):
        return any(_fits(value, item) for item in shape)
    return shape is object or (shape is None and value is None)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _misfit_object(value: Any, shape: dict[str, Shape] | Named, name: str) -> str:
    if not isinstance(value, Mapping):
        return _want("an object", name, value)
    dot = f"{name}." if name else ""
    if isinstance(shape, Named):
        return next((why for key, item in value.items() if (why := misfit(item, shape.of, f"{dot}{key}"))), "")
    for key, wanted in shape.items():
        plain = key.removesuffix("?")
        if plain in value:
            if why := misfit(value[plain], wanted, f"{dot}{plain}"):
                return why
        elif plain == key:
            return f"want {dot}{key}; it is not there"
    return ""


def _want(what: str, name: str, value: Any) -> str:
    shown = repr(value)[:80] if isinstance(value, bool | int | float | str | None) else type(value).__name__
    return f"want {what}{f' at {name}' if name else ''}; got {shown}"


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond what a float holds
        return False


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _too_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return False
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
    return bool(level)


def cleaned(value: Any) -> Any:
    """Lists and objects with words() of all their texts."""
    if isinstance(value, str):
        return words(value)
    if isinstance(value, list | tuple):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {words(key): cleaned(item) for key, item in value.items()}
    return value
