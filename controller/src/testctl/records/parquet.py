# SPDX-License-Identifier: Apache-2.0
"""Reads Parquet files.  pyarrow.parquet.read_table would first import pyarrow.dataset, which takes longer than most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A file, or these columns of it in this order.  Raises OSError and pyarrow's errors."""
    with pq.ParquetFile(path) as file:
        found = file.read(None if columns is None else list(columns))
    return found if columns is None else found.select(list(columns))
