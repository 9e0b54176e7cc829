# SPDX-License-Identifier: Apache-2.0
"""An answer to the page as JSON: the server's, and what report.html has packed."""

from __future__ import annotations

import json
import math
from typing import Any

from testctl_agent.spec import untrusted

_WHOLE = ("t", "y", "least", "most")
"""Lists of figures, which hold whole numbers only."""


def answer_text(body: Any) -> str:
    """JSON, with words() of texts of Parquet columns too, and null for NaN and infinity, which JSON has not got."""
    text = json.dumps(_finite(body), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if untrusted.SUSPECT.search(text):
        text = json.dumps(untrusted.cleaned(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
    return text


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: item if key in _WHOLE else _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
