# SPDX-License-Identifier: Apache-2.0
"""What an agent that is not one's own any more can say, and what the controller makes of it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.results import atomic
from testctl.testbeds.point_runner import result_of
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.errors import TestbedError
from testctl_rack.mtls import below, write_checked

HERE = Path("/somewhere/results")


@pytest.mark.parametrize(
    "file", ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\0b", "a\nb", "../../.ssh/authorized_keys"]
)
def test_a_file_goes_nowhere_else(file: str) -> None:
    with pytest.raises(TestbedError, match="host alpha: want the name of a file; got"):
        below(HERE, file, "host alpha")


@given(file=st.text(max_size=20))
def test_whatever_it_is_called(file: str) -> None:
    try:
        assert below(HERE, file, "host alpha").resolve().parent == HERE
    except TestbedError:
        return


def chunks(*data: bytes, told: str | None = None) -> Iterator[pb.Chunk]:
    yield from (pb.Chunk(data=one) for one in data)
    yield pb.Chunk(sha256=hashlib.sha256(b"".join(data)).hexdigest() if told is None else told)


def test_a_file_comes_whole(tmp_path: Path) -> None:
    write_checked(chunks(b"one ", b"two"), tmp_path / "new" / "file", "host alpha")
    assert (tmp_path / "new" / "file").read_bytes() == b"one two"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


@pytest.mark.parametrize("told", ["", "0" * 64])
def test_or_not_at_all(tmp_path: Path, told: str) -> None:
    with pytest.raises(TestbedError, match="host alpha: want the SHA-256 "):
        write_checked(chunks(b"one", told=told), tmp_path / "file", "host alpha")
    assert not list(tmp_path.iterdir())


def test_nor_when_the_stream_breaks(tmp_path: Path) -> None:
    def broken() -> Iterator[pb.Chunk]:
        yield pb.Chunk(data=b"one")
        raise ValueError("the channel is closed")

    with pytest.raises(ValueError, match="closed"):
        write_checked(broken(), tmp_path / "file", "host alpha")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"x"', "null"])
def test_a_result_that_is_none(text: str) -> None:
    with pytest.raises(TestbedError, match="alpha, bulk-client: want a result "):
        result_of("alpha, bulk-client", text, "tgen")


def test_a_file_that_would_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all but a little of the disk had to stay free: an endless stream is ended, and nothing of it is kept."""

    def endless() -> Iterator[pb.Chunk]:
        while True:
            yield pb.Chunk(data=bytes(1 << 20))

    monkeypatch.setattr(atomic, "KEPT_FREE", shutil.disk_usage(tmp_path).free - (200 << 20))
    with pytest.raises(TestbedError, match=r"to stay free; what comes would leave"):
        write_checked(endless(), tmp_path / "file", "host alpha")
    assert not list(tmp_path.iterdir())
