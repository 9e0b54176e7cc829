# SPDX-License-Identifier: Apache-2.0
"""Plain data as one line of the YAML that plans are written in."""

from __future__ import annotations

import json
import re
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.plan.document import parse
from testctl.plan.plain import plain

_NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")


def block(value: Any, *, quote: bool = False) -> str:
    """A scalar, list or mapping in flow style; words stay bare where the loader reads them back as they are.

    quote: put text in quotes that looks like a number but is none to a plan, such as the kernel "6.12"
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{block(key)}: {block(item, quote=quote)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(block(item, quote=quote) for item in value) + "]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    text = str(value)
    odd = quote and _NUMBER.fullmatch(text) and not text.isdigit()
    return text if not odd and _bare(text) else json.dumps(text, ensure_ascii=False)


def _bare(text: str) -> bool:
    if not text.isprintable() or text != text.strip():
        return False
    try:
        read = plain(parse(f"[{text}]\n", "<word>")).data
    except PlanError:
        return False
    return read in ([text], [int(text)] if text.isdigit() else None) and "#" not in text
