# SPDX-License-Identifier: Apache-2.0
"""The content of a verified flow is as documented, and a wrong byte is detected."""

from __future__ import annotations

import random
import socket
from typing import Any

import pytest

_ONES = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ONES
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ONES
    return z ^ (z >> 31)


def content(seed: int, conn: int, size: int) -> bytes:
    key = mix((mix((seed + _GOLDEN) & _ONES) + (conn + 1) * _GOLDEN) & _ONES)
    words = (mix((key + (n + 1) * _GOLDEN) & _ONES) for n in range(size // 8 + 1))
    return b"".join(word.to_bytes(8, "little") for word in words)[:size]


def serve(runner: Any, data: bytes, **options: object) -> tuple[int, str, dict[str, Any]]:
    """Feed a server from a socket of ours."""

    ports = runner.free_ports()
    process, out = runner.end("serve", server_port=ports + 3, client_port=ports, verify="on", **options)
    with socket.create_connection(("127.0.0.1", ports + 3), source_address=("127.0.0.1", ports)) as client:
        client.sendall(data)
    found: tuple[int, str, dict[str, Any]] = runner.finish(process, out)
    return found


def test_content_is_splitmix64_of_the_offset(runner: Any) -> None:
    code, said, result = serve(runner, content(7, 0, 100_003), seed=7, bytes=100_003)
    assert (code, said, result["connections"][0]["verified"]) == (0, "", True)


@pytest.mark.parametrize("bad", [0, 7, 8, 1000, 99_999])
def test_the_first_wrong_byte_is_found(runner: Any, bad: int) -> None:
    data = bytearray(content(7, 0, 100_000))
    data[bad] ^= 1
    if bad < 99_000:
        data[bad + random.Random(bad).randrange(1, 900)] ^= 0x80
    code, said, result = serve(runner, bytes(data), seed=7, bytes=100_000)
    assert code == 1
    assert said == f"tgen serve: connection 0: content: the byte at offset {bad} is wrong\n"
    found = result["connections"][0]
    assert (found["verified"], found["bad_offset"], found["bytes_received"]) == (False, bad, 100_000)


@pytest.mark.parametrize("other", [{"seed": 8}, {"seed": 7}])
def test_content_depends_on_seed_and_connection(runner: Any, other: dict[str, int]) -> None:
    wrong = content(7, 1, 100) if other["seed"] == 7 else content(7, 0, 100)
    code, _, result = serve(runner, wrong, bytes=100, **other)
    assert (code, result["connections"][0]["verified"]) == (1, False)
