# SPDX-License-Identifier: Apache-2.0
"""Files of a run that are small and stand for more than the memory: refused by every reader, before they are read."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from testctl.metrics.stalls.table import STALLS
from testctl.records import PACKETS, REQUESTS, TCP_EVENTS, TCP_INFO
from testctl.records.files import MOST_JSON
from testctl.results import layout
from testctl.serve.runs import MOST_HEAD

from controller.tests.serve.conftest import make_run

pytestmark = pytest.mark.long

LIMIT_BYTES = 5 << 30
"""Of address space of the reader; what Python, Arrow, numpy and matplotlib map of it is about 2 GiB."""
SPREAD = 4
"""How many times what a reader may take a file stands for."""
GROUP = 1 << 20
TABLES = {
    layout.PACKETS: PACKETS,
    layout.TCP_INFO: TCP_INFO,
    layout.TCP_EVENTS: TCP_EVENTS,
    layout.REQUESTS: REQUESTS,
    layout.STALLS: STALLS,
}
READERS = """
import gc, sys, traceback
from pathlib import Path
from testctl_agent.spec.errors import TestctlError
run, other, table = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

def library():
    from testctl.api import load
    point = load(run).point("loss")
    getattr(point, table)() if callable(getattr(point, table)) else getattr(point, table)

def files():
    from testctl.results import load_point
    getattr(load_point(run / "points" / "loss"), table)()

def records():
    from testctl.results import load_point
    load_point(run / "points" / "loss").records()

def cli(*words):
    from testctl.cli.main import _command
    try:
        _command()(list(words), prog_name="testctl", standalone_mode=False)
    except SystemExit:
        pass

def page():
    from testctl.serve.point import Points
    Points(run.parent).page(run.name, "loss")

def show(): cli("show", str(run), "loss")
def report(): cli("report", str(run), "--force")
def series(): cli("series", str(run), "loss")
def compare(): cli("compare", str(run), str(other))

for reader in (library, files, records, show, report, series, compare, page):
    try:
        reader()
        became = "read"
    except TestctlError as error:
        became = f"refused: {str(error)[:200]}"
    except BaseException as error:
        traceback.print_exc()
        became = f"FAILED: {type(error).__name__}"
    print("\\n@", reader.__name__, became, flush=True)
    gc.collect()
"""


def bomb(path: Path, schema: pa.Schema) -> None:
    """As many rows, all the same, as take SPREAD times what a reader may use."""
    width = sum(4 if _is_text(field.type) else field.type.bit_width / 8 for field in schema)
    groups = int(SPREAD * LIMIT_BYTES / 4 / width / GROUP) + 1
    arrays = []
    for field in schema:
        value = pa.array(["bulk"] if _is_text(field.type) else [0])
        codes = pa.repeat(pa.scalar(0, pa.int32()), GROUP)
        arrays.append(pa.DictionaryArray.from_arrays(codes, value).cast(field.type))
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        for _ in range(groups):
            file.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=GROUP)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) or pa.types.is_string(kind))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    where = tmp_path_factory.mktemp("bombs") / "results"
    return [make_run(where, day) for day in (1, 2)]


def readers(runs: list[Path], table: str) -> dict[str, str]:
    """What became of every reader, each in a process with a limit."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))

    argv = [sys.executable, "-c", READERS, *map(str, runs), table]
    done = subprocess.run(argv, capture_output=True, text=True, preexec_fn=limit, check=False, timeout=900)
    said = dict(line[2:].split(" ", 1) for line in done.stdout.splitlines() if line.startswith("@ "))
    assert len(said) == 8, f"exit {done.returncode}: {done.stderr[-2000:]}"
    assert not [one for one in said.values() if one.startswith("FAILED")], f"{said}: {done.stderr[-2000:]}"
    return said


@pytest.mark.timeout(900)
@pytest.mark.parametrize("file", TABLES)
def test_a_table_of_more_than_the_memory(two: list[Path], file: str) -> None:
    path = two[0] / "points" / "loss" / file
    whole = path.read_bytes() if path.exists() else None
    bomb(path, TABLES[file])
    try:
        assert path.stat().st_size < 40 << 20
        said = readers(two, path.stem)
        assert said["files"].startswith("refused")
        assert "want a table of at most" in said["files"]
    finally:
        path.unlink() if whole is None else path.write_bytes(whole)


def test_a_table_as_it_should_be(two: list[Path]) -> None:
    assert readers(two, "packets") == dict.fromkeys(
        ("library", "files", "records", "show", "report", "series", "compare", "page"), "read"
    )


def test_a_long_text_in_many_rows(tmp_path: Path, two: list[Path]) -> None:
    path = two[0] / "points" / "loss" / layout.STALLS
    whole = path.read_bytes()
    text = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), GROUP), pa.array(["x" * 100_000]))
    table = pa.table({"proof": text})
    pq.write_table(table, path, compression="zstd", store_schema=False)
    try:
        said = readers(two, "stalls")
        assert "want a table of at most" in said["files"]
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("file", [layout.SUMMARY, "points/loss/metrics.json", "points/loss/verdict.json"])
def test_a_json_file_of_more_than_a_run_has(two: list[Path], file: str) -> None:
    path = two[0] / file
    whole = path.read_bytes()
    try:
        with path.open("r+b") as wide:
            wide.truncate(MOST_JSON + 1)
        said = readers(two, "packets")
        assert "want a file of at most 256 MiB" in said["show"] + said["files"]
    finally:
        path.write_bytes(whole)


def test_the_head_of_a_summary_is_read_once(two: list[Path]) -> None:
    """A long one without points took time by the square of its length."""
    from testctl.serve.runs import Runs

    path = two[0] / layout.SUMMARY
    whole = path.read_text()
    try:
        path.write_text(json.dumps({"plan": "x" * (MOST_HEAD + 1)}))
        (line,) = [line for line in Runs(two[0].parent).lines() if line["name"] == two[0].name]
        assert line["state"] == "damaged"
        assert "within the first 16 MiB" in str(line)
    finally:
        path.write_text(whole)
