# SPDX-License-Identifier: Apache-2.0
"""The spool: batches are complete, in order, none twice, of bounded size, for one upload at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.units import Bytes
from testctl_influx.spool import DamagedBatchError, Spool, SpoolFull, held
from testctl_influx.target import Destination

TARGET = Destination("http://127.0.0.1:1")


def opened(where: Path, limit: str = "1kB") -> Spool:
    with held(where, TARGET, Bytes.parse(limit), lambda: None) as spool:
        return spool


def test_they_wait_in_order_and_none_twice(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    given = [bytes([count]) * 3 for count in (5, 1, 9, 3)]
    for batch in [*given, *given]:
        spool.add(batch)
    assert [path.read_bytes() for path in spool.waiting()] == given
    spool.drop(spool.waiting()[0])
    spool.add(b"later")
    assert [path.read_bytes() for path in opened(tmp_path).waiting()] == [*given[1:], b"later"]


def test_only_their_owner_reads_them(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        spool = opened(tmp_path / "spool")
        kept, refused = spool.add(b"x"), spool.refuse(b"y", "why")
    finally:
        os.umask(before)
    assert {kept.stat().st_mode & 0o777, refused.stat().st_mode & 0o777} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (kept.parent, refused.parent)} == {0o700}


def test_a_full_spool_takes_no_more_and_keeps_what_it_has(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.add(b"a" * 600)
    with pytest.raises(SpoolFull, match=r"want 600B more for batches that wait; got 600B of at most 1kB there already"):
        spool.add(b"b" * 600)
    assert [path.read_bytes() for path in spool.waiting()] == [b"a" * 600]
    spool.add(b"a" * 600)
    spool.refuse(b"c" * 700, "why")
    spool.add(b"d" * 300)
    with pytest.raises(SpoolFull, match=r"want 400B more for batches that the server refused; got 700B of at most 1kB"):
        spool.refuse(b"e" * 400, "why")
    assert len(spool.refused()) == 1


def test_what_a_killed_upload_left_half_written_is_no_batch(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.add(b"whole")
    half = spool.path / ".0000000001-00.lp.gz.tmp"
    half.write_bytes(b"ha")
    assert [path.read_bytes() for path in opened(tmp_path).waiting()] == [b"whole"]
    assert not half.exists()


@pytest.mark.parametrize("damage", [b"", b"who", b"whole, and more"])
def test_a_batch_that_is_not_what_was_kept_is_set_aside(tmp_path: Path, damage: bytes) -> None:
    spool = opened(tmp_path)
    kept, other = spool.add(b"whole"), spool.add(b"other")
    kept.write_bytes(damage)
    with pytest.raises(DamagedBatchError, match=rf"want the batch of this digest; got {len(damage)} bytes of .*upload"):
        spool.read(kept)
    assert spool.waiting() == [other]
    (aside,) = spool.refused()
    assert aside.read_bytes() == damage
    assert "want the batch" in aside.with_name(aside.name.replace(".lp.gz", ".txt")).read_text(encoding="utf-8")
    assert spool.read(other) == b"other"


def test_each_target_has_its_own(tmp_path: Path) -> None:
    opened(tmp_path).add(b"x")
    for other in (
        Destination("http://127.0.0.1:2"),
        Destination(TARGET.url, database="b"),
        Destination(TARGET.url, policy="p"),
    ):
        with held(tmp_path, other, Bytes(1000), lambda: None) as spool:
            assert spool.waiting() == []
    with held(tmp_path, Destination(TARGET.url, api="1"), Bytes(1000), lambda: None) as spool:
        assert len(spool.waiting()) == 1, "the version was not known when the server was away"


def test_a_place_that_can_not_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(TestbedError, match="nothing was uploaded"),
        held(tmp_path / "file", TARGET, Bytes(1000), lambda: None),
    ):
        pass


def test_a_second_upload_waits_for_the_first(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom testctl_influx.spool import held\n"
        "from testctl_influx.target import Destination\nfrom testctl_agent.spec.units import Bytes\n"
        f"with held(Path({str(tmp_path)!r}), Destination({TARGET.url!r}), Bytes(1000), "
        "lambda: print('waits', flush=True)) as spool:\n    print(len(spool.waiting()), flush=True)\n"
    )
    with held(tmp_path, TARGET, Bytes(1000), lambda: None) as spool:
        other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "waits\n"
        spool.add(b"x")
    try:
        assert other.communicate(timeout=300)[0] == "1\n", "it sees what the first one left"
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()
