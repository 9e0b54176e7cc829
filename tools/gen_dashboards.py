# SPDX-License-Identifier: Apache-2.0
"""Writes Grafana's dashboards from the metrics' specs: overview.json, plan.json, point.json, nightly.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from testctl.grafana import dashboards


def text(board: dict[str, object]) -> str:
    """JSON with a line for each panel and each of the rest, so that a change is seen in few lines."""
    lines = []
    for name, value in board.items():
        if isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            lines.append(f' "{name}": [\n  {items}\n ]')
        else:
            lines.append(f' "{name}": {json.dumps(value, ensure_ascii=False)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(where: Path) -> None:
    where.mkdir(parents=True, exist_ok=True)
    for name, board in dashboards().items():
        (where / f"{name}.json").write_text(text(board), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
