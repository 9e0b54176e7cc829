# SPDX-License-Identifier: Apache-2.0
"""What the scripts of serve and of report.html have to know to draw: colours, figures; and the scripts as one."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

from testctl.charts.style import (
    ACK,
    DATA,
    FATE_COLOURS,
    LANES,
    ON_DARK,
    RECOVERY,
    RETRANS,
    SACK,
    SHOWN_LOOKS,
    STALL,
    UNA,
    WINDOW,
)
from testctl.curves import curves
from testctl.metrics import metric_names
from testctl.report.metrics import KEY_METRICS

_MODULES = ("dom.js", "chart.js", "board.js", "stalls.js", "sweep.js")
"""Of serve/static, each after those that it imports."""

_FIGURE = ("name", "title", "of", "kind", "shape", "each", "zero", "large", "stalls")


def looks() -> dict[str, Any]:
    """Colours, signs, and what the page has to know of a curve to draw it."""
    return {
        "verdicts": {name: [look.colour, look.sign] for name, look in SHOWN_LOOKS.items()},
        "lanes": list(LANES),
        "data": DATA,
        "retrans": RETRANS,
        "ack": ACK,
        "stall": STALL,
        "sack": SACK,
        "una": UNA,
        "window": WINDOW,
        "recovery": [RECOVERY[False], RECOVERY[True]],
        "fates": FATE_COLOURS,
        "dark": ON_DARK,
        "headlines": [metric for metric, _ in KEY_METRICS],
        "better": {name: info.better for name, info in metric_names().items() if info.better != "none"},
        "figures": [
            {key: getattr(curve.spec, key) for key in _FIGURE} for curve in curves().values() if curve.spec.title
        ],
    }


def styles() -> str:
    """serve's style sheet and what the report has besides."""
    return own_file("serve/static/app.css") + own_file("report/report.css")


def script() -> str:
    """serve's modules and the report's own as one script: a page that was opened as a file loads no modules."""
    parts = [_as_function(name, own_file(f"serve/static/{name}")) for name in _MODULES]
    return "\n".join(
        ['"use strict";', "const modules = {};", *parts, _as_function("report.js", own_file("report/report.js"))]
    )


def _as_function(name: str, text: str) -> str:
    """A module as a function that is called at once: imports become constants, exports what it returns."""
    exported = re.findall(r"^export (?:const|let|class|(?:async )?function) (\w+)", text, re.MULTILINE)
    text = re.sub(r'^import (\{[^}]*\}) from "\./([\w.]+)";', r'const \1 = modules["\2"];', text, flags=re.MULTILINE)
    text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
    return f'modules["{name}"] = (() => {{\n{text}return {{ {", ".join(exported)} }};\n}})();'


def own_file(name: str) -> str:
    """The text of a file of the package."""
    return resources.files("testctl").joinpath(name).read_text(encoding="utf-8")
