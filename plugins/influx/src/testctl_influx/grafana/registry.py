# SPDX-License-Identifier: Apache-2.0
"""Finds the dashboards: every module of `boards` defines one; its name is the file's name."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import testctl_influx.grafana.boards
from testctl_influx.grafana.model import Board, Json


def dashboards() -> dict[str, Json]:
    """Each dashboard's JSON by name, sorted.  Raises ValueError for a module that defines none."""
    made = {}
    for info in sorted(pkgutil.iter_modules(testctl_influx.grafana.boards.__path__), key=lambda found: found.name):
        module: Any = importlib.import_module(f"testctl_influx.grafana.boards.{info.name}")
        board = getattr(module, "BOARD", None)
        if not isinstance(board, Board):
            raise ValueError(f"grafana/boards/{info.name}: want BOARD, a Board; got {type(board).__name__}")
        made[info.name] = board.to_json(info.name)
    return made
