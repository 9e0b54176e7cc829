# SPDX-License-Identifier: Apache-2.0
"""Extracts the instructions of a compiled BPF object, so that no target needs a compiler or libbpf.

    python -m testctl_agent.bpf.extract htb_mark.o htb_mark.c htb_mark.json

The JSON contains the SHA-256 of the source, the maps, and for each section its instructions as hex
with the offsets of map file descriptors.  Sources: the ELF64 layout of elf(5);
Documentation/bpf/llvm_reloc.rst (R_BPF_64_64).
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGBITS, _SYMTAB, _REL = 1, 2, 9
_R_BPF_64_64 = 1
_PREFIX = "program/"
INSTRUCTION_BYTES = 8


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    data: bytes
    link: int
    info: int


def _name(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _sections(elf: bytes) -> list[_Section]:
    if elf[:6] != b"\x7fELF\x02\x01":
        raise ValueError("want a little-endian ELF64 object")
    (start,) = struct.unpack_from("<Q", elf, 40)
    size, count, names_index = struct.unpack_from("<3H", elf, 58)
    headers = [struct.unpack_from("<2I4Q2I2Q", elf, start + at * size) for at in range(count)]
    names = elf[headers[names_index][4] :]
    return [_Section(_name(names, h[0]), h[1], h[2], elf[h[4] : h[4] + h[5]], h[6], h[7]) for h in headers]


def extract(elf: bytes, source: bytes) -> dict[str, Any]:
    """The object as plain data; ValueError for a relocation other than that of a map."""
    sections = _sections(elf)
    symbols_section = next(s for s in sections if s.kind == _SYMTAB)
    strings = sections[symbols_section.link].data
    symbols = [
        struct.unpack_from("<IBBHQQ", symbols_section.data, at) for at in range(0, len(symbols_section.data), 24)
    ]
    maps = {
        _name(strings, s[0]): list(struct.unpack_from("<4I", sections[s[3]].data, s[4]))
        for s in symbols
        if s[3] < len(sections) and sections[s[3]].name == "maps" and s[1] & 15 == 1
    }
    programs: dict[str, dict[str, Any]] = {}
    for section in sections:
        if section.kind == _PROGBITS and section.name.startswith(_PREFIX):
            programs[section.name.removeprefix(_PREFIX)] = {"maps": {}, "hex": section.data.hex()}
    for section in sections:
        target = sections[section.info].name.removeprefix(_PREFIX) if section.kind == _REL else ""
        if target not in programs:
            continue
        for at in range(0, len(section.data), 16):
            offset, info = struct.unpack_from("<2Q", section.data, at)
            name = _name(strings, symbols[info >> 32][0])
            if info & 0xFFFFFFFF != _R_BPF_64_64 or name not in maps:
                raise ValueError(f"{target}: relocation to {name!r}; want a map")
            programs[target]["maps"][str(offset // INSTRUCTION_BYTES)] = name
    digest = hashlib.sha256(source).hexdigest()
    return {"SPDX-License-Identifier": "GPL-2.0", "source_sha256": digest, "maps": maps, "programs": programs}


def main(arguments: list[str]) -> int:
    compiled, source, out = (Path(argument) for argument in arguments)
    out.write_text(json.dumps(extract(compiled.read_bytes(), source.read_bytes()), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
