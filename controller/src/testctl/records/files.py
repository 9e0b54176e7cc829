# SPDX-License-Identifier: Apache-2.0
"""Where a file of an entity's raw output is."""

from __future__ import annotations

from pathlib import Path

from testctl.records.errors import RecordsError


def find_file(entity: Path, name: str) -> Path | None:
    """ENTITY/NAME or ENTITY/*/NAME; None when there is none, RecordsError when there are several."""
    found = [path for path in (entity / name, *sorted(entity.glob(f"*/{name}"))) if path.is_file()]
    if len(found) > 1:
        raise RecordsError(entity, f"want one {name}; got {', '.join(str(path.relative_to(entity)) for path in found)}")
    return found[0] if found else None
