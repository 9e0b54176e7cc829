# SPDX-License-Identifier: Apache-2.0
"""Where a file of an entity's raw output is, and what is in a JSON one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testctl.records.errors import RecordsError


def find_file(entity: Path, name: str) -> Path | None:
    """ENTITY/NAME or ENTITY/*/NAME; None when there is none, RecordsError when there are several."""
    found = [path for path in (entity / name, *sorted(entity.glob(f"*/{name}"))) if path.is_file()]
    if len(found) > 1:
        raise RecordsError(entity, f"want one {name}; got {', '.join(str(path.relative_to(entity)) for path in found)}")
    return found[0] if found else None


def read_object(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds.  Raises RecordsError."""
    try:
        loaded = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RecordsError(path, f"can't be read as JSON: {error}") from error
    if not isinstance(loaded, dict):
        raise RecordsError(path, f"want a JSON object; got {type(loaded).__name__}")
    return loaded
