# SPDX-License-Identifier: Apache-2.0
"""Texts in Parquet columns of a run that somebody sent: read without what a terminal or a page acts on."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from testctl_agent.spec.untrusted import words


def cleaned(table: pa.Table) -> pa.Table:
    """The table with words() of all its texts; the same table where there is nothing to replace."""
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if pa.types.is_dictionary(field.type) and _is_text(field.type.value_type):
            if any(_suspect(chunk.dictionary.to_pylist()) for chunk in column.chunks):
                chunks = [pa.DictionaryArray.from_arrays(one.indices, _words(one.dictionary)) for one in column.chunks]
                table = table.set_column(index, field, pa.chunked_array(chunks, field.type))
        elif _is_text(field.type) and _suspect(pc.unique(column).to_pylist()):
            chunks = [_words(chunk) for chunk in column.chunks]
            table = table.set_column(index, field, pa.chunked_array(chunks, field.type))
    return table


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _suspect(texts: Iterable[str | None]) -> bool:
    return any(text is not None and words(text) != text for text in texts)


def _words(texts: pa.Array) -> pa.Array:
    return pa.array([None if text is None else words(text) for text in texts.to_pylist()], texts.type)
