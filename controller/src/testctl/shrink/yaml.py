# SPDX-License-Identifier: Apache-2.0
"""Writes plain data as a line of YAML for plans."""

from __future__ import annotations

import json
import re
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.plan.located import plain
from testctl.plan.yaml_reader import parse

_NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")


def block(value: Any, *, values: bool = False) -> str:
    """A scalar, list or mapping in flow style; words are quoted only where the loader needs it.

    values: all text is what tuples set, for which 5 and "5" are the same; "6.12" gets quotes, since it is no number
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{block(key)}: {block(item, values=values)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(block(item, values=values) for item in value) + "]"
    if isinstance(value, bool | int) or value is None:
        return json.dumps(value)
    text = str(value)
    number = values and _NUMBER.fullmatch(text)
    bare = _WHOLE.fullmatch(text) if number else _bare(text)
    return text if bare else json.dumps(text, ensure_ascii=not text.isprintable())


def _bare(text: str) -> bool:
    """Whether the loader reads the unquoted word unchanged, in a list as in a mapping."""
    if not text.isprintable() or "#" in text or ":" in text[-1:]:
        return False
    try:
        return bool(plain(parse(f"[{text}, {{{text}: {text}}}]\n", "<word>")) == [text, {text: text}])
    except PlanError:
        return False
