# SPDX-License-Identifier: Apache-2.0
"""Reads Parquet files, and writes those of packets.

pyarrow.parquet.read_table would first import pyarrow.dataset, which takes longer than most.
"""

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


_AT_ONCE = 1 << 16
_REPEATING = ("length", "wire_bytes", "queue_bytes", "tsval", "tsecr")
"""Numbers that come again so soon that LZ4 is quicker with them as they are."""


def write_numbers(table: pa.Table, path: Path) -> None:
    """Write a large table of numbers without nulls, in a fifth of the time that pyarrow's defaults take.

    The bytes of a number are apart from each other, which LZ4 makes smaller than zstd does in their order; only names
    are in dictionaries, and only times have statistics.  Readers need Arrow 17 or DuckDB 1.2.
    """
    required = pa.schema([field.with_nullable(False) for field in table.schema], metadata=table.schema.metadata)
    names = [field.name for field in required if pa.types.is_dictionary(field.type)]
    apart = [field.name for field in required if pa.types.is_integer(field.type) and field.type.bit_width >= 32]
    apart = [name for name in apart if table.column(name).num_chunks <= 1]  # one in pieces is nearly constant
    apart = [name for name in apart if name not in _REPEATING]
    pq.write_table(
        pa.Table.from_arrays(table.columns, schema=required), path, compression="lz4", use_dictionary=names,
        column_encoding=dict.fromkeys(apart, "BYTE_STREAM_SPLIT"), write_statistics=["time_ns"],
        write_batch_size=_AT_ONCE,
    )  # fmt: skip
