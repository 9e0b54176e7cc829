# SPDX-License-Identifier: Apache-2.0
"""The committed BPF instructions are those of their source."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from testctl_agent import bpf
from testctl_agent.bpf import extract, htb_mark, load

FOLDER = Path(bpf.__file__).parent
SOURCES = sorted(FOLDER.glob("*.c"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_is_current(source: Path) -> None:
    committed = json.loads(source.with_suffix(".json").read_text())
    now = hashlib.sha256(source.read_bytes()).hexdigest()
    assert committed["source_sha256"] == now, f"{source.name} has changed: run make in {FOLDER}"


@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_compiles_to_a_whole_object(source: Path, tmp_path: Path) -> None:
    """Not to the same bytes: compilers differ, and only the committed one is loaded."""
    subprocess.run(
        [
            "make",
            "-s",
            f"PYTHON={sys.executable}",
            "-C",
            str(FOLDER),
            f"OUT={tmp_path}",
            f"{tmp_path}/{source.stem}.json",
        ],
        check=True,
    )
    made = json.loads((tmp_path / source.stem).with_suffix(".json").read_text())
    committed = json.loads(source.with_suffix(".json").read_text())
    assert made["maps"] == committed["maps"]
    assert made["programs"].keys() == committed["programs"].keys()


def test_maps_are_put_in() -> None:
    compiled = load.read_object(FOLDER / "htb_mark.json")
    assert compiled["maps"] == {"queues": [2, 4, struct.calcsize("=6Q"), 1]}
    for program in compiled["programs"].values():
        code = load.instructions(program, {"queues": 77})
        assert len(code) % 8 == 0
        for at in program["maps"]:
            opcode, registers, _, value = struct.unpack_from("<BBhi", code, int(at) * 8)
            assert (opcode, registers >> 4, value) == (0x18, 1, 77)


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(ValueError, match="want a little-endian ELF64 object"):
        extract.extract(b"\x7fELF\x01\x01", b"")


def test_a_threshold_that_is_not_set_is_never_reached() -> None:
    assert htb_mark.UNSET == 2**64 - 1
