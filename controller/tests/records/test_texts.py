# SPDX-License-Identifier: Apache-2.0
"""What a run from elsewhere has in its columns of texts reaches no terminal and no page."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from testctl.compare.packet import first_difference
from testctl.metrics import analyse
from testctl.plan import Judgement
from testctl.records import Records, load_raw
from testctl.records.parquet import cleaned
from testctl.results.reader import RunPoint
from testctl.results.verdict_file import VerdictFile

from controller.tests.support.synthetic import save

LOSS = Path(__file__).parents[1] / "metrics" / "fixtures" / "loss"
ODD = "\x1b]0;mine\x07\x9b2J\u202ex"
SHOWN = "�]0;mine��2J�x"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string())])
def test_a_table_is_cleaned(kind: pa.DataType) -> None:
    table = pa.table({"n": [1, 2, 3, 4], "text": pa.array([ODD, "plain\tline\n", None, ODD], pa.string()).cast(kind)})
    found = cleaned(table)
    assert found.schema == table.schema
    assert found.to_pydict() == {"n": [1, 2, 3, 4], "text": [SHOWN, "plain\tline\n", None, SHOWN]}


def test_a_table_with_nothing_to_replace_is_the_same() -> None:
    table = pa.table({"n": [1], "text": pa.array(["größer"]).dictionary_encode()})
    assert cleaned(table) is table


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A point whose places are called something that a terminal acts on."""
    save(load_raw(LOSS), tmp_path / "mine")
    shutil.copytree(tmp_path / "mine", tmp_path / "theirs")
    path = tmp_path / "theirs" / "packets.parquet"
    table = pq.read_table(path)
    index = table.schema.get_field_index("where")
    names = pa.array([ODD] * len(table)).cast(table.schema.field("where").type)
    pq.write_table(table.set_column(index, table.schema.field("where"), names), path)
    return tmp_path


def test_records_are_read_without(foreign: Path) -> None:
    assert Records.load(foreign / "theirs").codes("where")[1] == [SHOWN]
    assert Records.load(foreign / "mine").digest() == load_raw(LOSS).digest()


def test_a_comparison_says_it_without(foreign: Path) -> None:
    first = first_difference(foreign / "mine", foreign / "theirs")
    assert SHOWN in first.words()
    assert not set(first.words()) & set("\x1b\x07\x9b\u202e")


def test_stalls_are_read_without(tmp_path: Path) -> None:
    stalls = analyse(load_raw(LOSS)).stalls
    proof = stalls.schema.get_field_index("proof")
    odd = pa.array([ODD] * len(stalls)).cast(stalls.schema.field(proof).type)
    pq.write_table(stalls.set_column(proof, stalls.schema.field(proof), odd), tmp_path / "stalls.parquet")
    point = RunPoint(
        tmp_path, "x", (), "pass", "", "", 0.0, 0.0, {}, VerdictFile("x", Judgement("pass"), Judgement("pass"))
    )
    found = point.stalls()
    assert found is not None
    assert found.num_rows == stalls.num_rows > 0
    assert set(found.column("proof").to_pylist()) == {SHOWN}
