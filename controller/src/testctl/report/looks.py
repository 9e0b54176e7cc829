# SPDX-License-Identifier: Apache-2.0
"""What the page's scripts have to know to draw: colours, figures; and the scripts as one, for report.html."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

from testctl.charts.style import ON_DARK, SHOWN_LOOKS, VIRIDIS
from testctl.curves import curves
from testctl.metrics import metric_names
from testctl.report.embedded import BINS_NS, COLUMNS
from testctl.report.metrics import KEY_METRICS

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w.]+)";', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:const|let|class|(?:async )?function) (\w+)", re.MULTILINE)

_FIGURE = ("name", "title", "of", "large")


def looks() -> dict[str, Any]:
    """Colours, signs, and what the page has to know of a curve to draw it."""
    return {
        "verdicts": {name: [look.colour, look.sign] for name, look in SHOWN_LOOKS.items()},
        "dark": ON_DARK,
        "scale": VIRIDIS,
        "headlines": [metric for metric, _ in KEY_METRICS],
        "better": {name: info.better for name, info in metric_names().items() if info.better != "none"},
        "bins": {"bins": list(BINS_NS), "most": COLUMNS},
        "figures": [
            {key: getattr(curve.spec, key) for key in _FIGURE} for curve in curves().values() if curve.spec.title
        ],
    }


def script(*names: str) -> str:
    """Modules of serve, and those that they import, as one script: a page that was opened as a file loads none."""
    texts: dict[str, str] = {}
    for name in names:
        _gather(name, texts)
    return "\n".join(['"use strict";', "const modules = {};", *(_as_function(*module) for module in texts.items())])


def _gather(name: str, texts: dict[str, str]) -> None:
    """A module after those that it imports."""
    if name in texts:
        return
    text = own_file(f"serve/static/{name}")
    for _, other in _IMPORT.findall(text):
        _gather(other, texts)
    texts[name] = text


def _as_function(name: str, text: str) -> str:
    """A module as a function that is called at once: imports become constants, exports what it returns."""
    exported = _EXPORT.findall(text)
    text = _IMPORT.sub(lambda match: f'const {match[1].replace(" as ", ": ")} = modules["{match[2]}"];', text)
    text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
    return f'modules["{name}"] = (() => {{\n{text}return {{ {", ".join(exported)} }};\n}})();'


def own_file(name: str) -> str:
    return resources.files("testctl").joinpath(name).read_text(encoding="utf-8")


def rendered(template: str, **given: Any) -> str:
    """A page by a template, a file of the package."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # most commands write no such page

    loader = PackageLoader("testctl", ".")
    env = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return env.get_template(template).render(**given)
