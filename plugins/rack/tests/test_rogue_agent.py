# SPDX-License-Identifier: Apache-2.0
"""What an agent that is not one's own any more can say, and what the controller makes of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.results import atomic
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


def test_of_a_stream_that_breaks_nothing_is_kept(tmp_path: Path) -> None:
    def broken() -> Iterator[pb.Chunk]:
        yield pb.Chunk(data=b"one")
        raise ValueError("the channel is closed")

    with pytest.raises(ValueError, match="closed"):
        write_checked(broken(), tmp_path / "file", "host alpha")
    assert not list(tmp_path.iterdir())


def test_a_file_that_would_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all but a little of the disk had to stay free: an endless stream is ended, and nothing of it is kept."""

    def endless() -> Iterator[pb.Chunk]:
        while True:
            yield pb.Chunk(data=bytes(1 << 20))

    monkeypatch.setattr(atomic, "KEPT_FREE", shutil.disk_usage(tmp_path).free - (200 << 20))
    with pytest.raises(TestbedError, match=r"to stay free; what comes would leave"):
        write_checked(endless(), tmp_path / "file", "host alpha")
    assert not list(tmp_path.iterdir())
