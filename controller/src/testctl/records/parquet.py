# SPDX-License-Identifier: Apache-2.0
"""Reads Parquet files and cleans their texts, and writes the files of packets.

pyarrow.parquet.read_table would first import pyarrow.dataset, which takes longer than most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from testctl_agent.spec.untrusted import words

from testctl.records.errors import RecordsError
from testctl.system.memory import spare_bytes

_CODE_BYTES = 4
"""Of a text that is read as an index into a list of distinct texts."""


def read_parquet(path: Path, columns: Sequence[str] | None = None, becomes: pa.Schema | None = None) -> pa.Table:
    """A file, or these columns of it in this order.

    becomes: what the caller casts it to, which counts too

    Raises OSError and pyarrow's errors; RecordsError, before anything is read, where the rows would take more memory
    than one table may: a file of megabytes may have billions that are all the same.
    """
    with open_parquet(path, columns, becomes) as file:
        table = file.read(None if columns is None else list(columns))
        kinds = {field.name: field.type for field in pq.read_schema(path)}
    for index, name in enumerate(table.schema.names):
        if table.schema.types[index] != kinds[name]:
            column = table.column(index)  # of texts: refused where the same long text is there too often
            longest = max((pc.max(pc.binary_length(c.dictionary)).as_py() or 0 for c in column.chunks), default=0)
            _check(path, len(column), longest)
            table = table.set_column(index, name, column.cast(kinds[name]))
    return table if columns is None else table.select(list(columns))


def open_parquet(path: Path, columns: Sequence[str] | None = None, becomes: pa.Schema | None = None) -> pq.ParquetFile:
    """A file whose rows fit into memory, these columns or all; texts are read as dictionaries.

    Raises OSError, pyarrow's errors and RecordsError, as read_parquet does.
    """
    schema = pq.read_schema(path)
    chosen = [field for field in schema if columns is None or field.name in columns]
    file = pq.ParquetFile(path, read_dictionary=[field.name for field in chosen if _is_text(field.type)])
    try:
        _check(path, rows_of(file), sum(_width(path, field) for field in becomes or chosen))
    except RecordsError:
        file.close()
        raise
    return file


def rows_of(file: pq.ParquetFile) -> int:
    """How many rows are read: the sum of the row groups', whatever total the file states."""
    groups = file.metadata
    return sum(groups.row_group(number).num_rows for number in range(groups.num_row_groups))


def _check(path: Path, rows: int, row_bytes: float) -> None:
    most = spare_bytes()
    if rows * row_bytes > most:
        need = f"{rows} rows of {row_bytes:g} bytes"
        raise RecordsError(path, f"want a table of at most {most >> 20} MiB (a quarter of the free memory); got {need}")


def _width(path: Path, field: pa.Field) -> float:
    """Bytes that a value of a column takes in memory.  Raises RecordsError for a type that no table has."""
    if pa.types.is_dictionary(field.type) or _is_text(field.type):
        return _CODE_BYTES
    try:
        return float(field.type.bit_width) / 8
    except ValueError as error:
        raise RecordsError(path, f"column {field.name}: want numbers or texts; got {field.type}") from error


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def cleaned(table: pa.Table) -> pa.Table:
    """A table of a run that somebody sent, without what a terminal or a page acts on in its texts: words() of each; the
    same table where there is nothing to replace."""
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if pa.types.is_dictionary(field.type) and _is_text(field.type.value_type):
            if any(_suspect(chunk.dictionary.to_pylist()) for chunk in column.chunks):
                chunks = [pa.DictionaryArray.from_arrays(c.indices, _clean(c.dictionary)) for c in column.chunks]
                table = table.set_column(index, field, pa.chunked_array(chunks, field.type))
        elif _is_text(field.type) and _suspect(pc.unique(column).to_pylist()):
            chunks = [_clean(chunk) for chunk in column.chunks]
            table = table.set_column(index, field, pa.chunked_array(chunks, field.type))
    return table


def _suspect(texts: Iterable[str | None]) -> bool:
    return any(text is not None and words(text) != text for text in texts)


def _clean(texts: pa.Array) -> pa.Array:
    return pa.array([None if text is None else words(text) for text in texts.to_pylist()], texts.type)


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
