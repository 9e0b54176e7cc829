# SPDX-License-Identifier: Apache-2.0
"""The committed build of the P4 program is that of its source, and says nothing of where it was made."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from testctl_agent.switch import testbed_program

ROOT = Path(__file__).parents[3]
BUILD = ROOT / "p4" / "build"


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((BUILD / "testbed.json").read_text(encoding="utf-8"))
    return found


def test_is_current() -> None:
    compiler, *lines = (BUILD / "sources.sha256").read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"# p4c [0-9.]+", compiler), "the compiler's version is noted"
    hashes = {path: digest for digest, path in (line.split() for line in lines)}
    files = [*ROOT.glob("p4/common/*.p4"), *ROOT.glob("p4/v1model/*.p4"), *BUILD.glob("testbed.[jp]*")]
    now = {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    stale = sorted(path for path in now.keys() | hashes.keys() if now.get(path) != hashes.get(path))
    assert not stale, f"stale: {', '.join(stale)} (make p4)"


def test_names_only_files_of_the_checkout(program: dict[str, Any]) -> None:
    text = (BUILD / "testbed.json").read_text(encoding="utf-8")
    named = set(re.findall(r'"filename" : "([^"]*)"', text)) | {program["program"]}
    assert named, "the JSON carries no source lines"
    outside = sorted(name for name in named if name and not (ROOT / name).is_file())
    assert not outside


def test_tables_are_as_large_as_the_agent_believes(program: dict[str, Any]) -> None:
    tables = [table for pipeline in program["pipelines"] for table in pipeline["tables"] if table["key"]]
    sizes = testbed_program.SIZES
    known = {next((name for name in sizes if full.endswith(f".{name}")), full): size
             for full, size in ((table["name"], table["max_size"]) for table in tables)}  # fmt: skip
    assert len(known) == len(tables)
    assert known == sizes


def test_telemetry_fields_are_in_the_agreed_order(program: dict[str, Any]) -> None:
    text = (ROOT / "p4/common/types.p4").read_text(encoding="utf-8")
    body = text.partition("struct Tap {")[2].partition("}")[0]
    fields = re.findall(r"^\s*\S+\s+(\w+);", body, re.MULTILINE)
    assert fields == ["flow", "kind", "fate", "ordinal", "first_ordinal", "seq", "ack", "payload", "window", "flags",
                      "ecn_in", "ecn_out", "park", "hold_ns", "flip_at"]  # fmt: skip
    scalars = next(kind for kind in program["header_types"] if kind["name"] == "scalars_0")
    compiled = [name for name, *_ in scalars["fields"] if "tap" in name]
    assert [re.sub(r".*tap_|\d+$", "", name) for name in compiled] == fields
