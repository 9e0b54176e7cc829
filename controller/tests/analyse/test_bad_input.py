# SPDX-License-Identifier: Apache-2.0
"""`testctl analyse` of files that are no captures, or not whole: a sentence, or as much as can be read."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from testctl.analyse import scan
from testctl.api import load
from testctl.cli.main import app, main
from testctl.records.errors import RecordsError
from typer.testing import CliRunner

from controller.tests.analyse import written as w


def called(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["testctl", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


WHOLE = w.pcap(w.conversation())
UDP = WHOLE[: 24 + 16 + 14 + 9] + b"\x11" + WHOLE[24 + 16 + 14 + 10 : 24 + 16 + 14 + 48]
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "want a capture (pcap or pcapng); got an empty file"),
    "text": (b"From: Alice\nhello", "byte 0: want a capture (pcap or pcapng); got 46726f6d"),
    "no packet": (WHOLE[:24], "want a capture with TCP; got one without any packet"),
    "unknown link": (WHOLE[:20] + b"\x7f\0\0\0" + WHOLE[24:], "got 46 frames: 46 of the unknown link type 127"),
    "without TCP": (UDP, "want a capture with TCP; got 1 frames: 1 without TCP"),
    "short snap length": (w.pcap(w.conversation(), snap=40), "46 cut within their headers (snap length)"),
    "gzip of text": (w.gzipped(b"From: Alice\nhello"), "want a capture (pcap or pcapng); got 46726f6d"),
    "broken gzip": (b"\x1f\x8b" + bytes(range(40)), "want a compressed capture; got "),
    "first record damaged": (WHOLE[:32] + b"\xff" * 4 + WHOLE[36:], "got a record whose length can't be"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_capture_of_tcp_is_refused_in_a_sentence(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, want = BAD[name]
    file = w.write(tmp_path / "x.pcap", data)
    assert called(monkeypatch, "analyse", file, "--out", tmp_path / "run") == 2
    error = capsys.readouterr().err
    assert want in error
    assert str(file) in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.pcap"]


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (WHOLE[:-10], "the file ends within a record, which is left out"),
        (w.pcapng(w.conversation())[:-10], "the file ends within a record, which is left out"),
        (WHOLE[:-70] + bytes(8) + b"\xff" * 62, "a record whose length can't be; the 45 packets before are analysed"),
        (w.gzipped(WHOLE)[:-40], "the compressed file is cut or damaged: what came before that is analysed"),
    ],
)
def test_a_file_that_is_cut_or_damaged_is_read_up_to_there(tmp_path: Path, data: bytes, note: str) -> None:
    scanned = scan(w.write(tmp_path / "c", data))
    assert 0 < scanned.tcp < 47
    assert note in " ".join(scanned.notes)


def test_more_than_two_files_and_unknown_ends_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = w.write(tmp_path / "x", WHOLE)
    middle, other = (w.write(tmp_path / name, w.pcap(w.conversation()[3:])) for name in "yz")
    for words, want in (
        ([file, file, file], "want one file, or two that were captured at the two ends; got 3"),
        ([file, "--only", "444"], "--only 444: want an end of a connection of "),
        ([middle, other], "want --at client or --at server for the first"),
        ([middle, other, "--at", "between"], "--at between: want one file"),
    ):
        assert called(monkeypatch, "analyse", *words) == 2
        assert want in capsys.readouterr().err


def test_what_does_not_fit_into_memory_is_refused_with_its_size_after_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("testctl.analyse.run.free_mb", lambda: 0)
    assert called(monkeypatch, "analyse", w.write(tmp_path / "x", WHOLE)) == 3
    out, error = capsys.readouterr()
    assert "10.0.0.1:40000-10.0.0.2:80\n    20 kB up, 0 down in" in out
    assert "46 packets of TCP take 29.9 kB of memory to analyse; this machine has 0 B free" in error


def test_with_json_the_list_of_what_does_not_fit_into_memory_is_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("testctl.analyse.run.free_mb", lambda: 0)
    assert called(monkeypatch, "analyse", w.write(tmp_path / "x", WHOLE), "--json") == 3
    (entry,) = json.loads(capsys.readouterr().out)["connections"]
    assert (entry["name"], entry["up"], entry["stalled_s"]) == ("10.0.0.1:40000-10.0.0.2:80", 20_000, None)


def test_all_lines_fit_into_80_columns_and_one_packet_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [replace(s, total=65535) if s.length else s for s in w.conversation()]
    assert called(monkeypatch, "analyse", w.write(tmp_path / "x", w.pcap(whole)), "--out", tmp_path / "run") == 1
    text = capsys.readouterr().out.partition("\nreport")[0]
    assert "breaks a MUST of an RFC: " in text
    assert max(map(len, text.splitlines())) <= 80
    one = w.write(tmp_path / "one", w.pcap(whole[:1]))
    assert called(monkeypatch, "analyse", one, "--out", tmp_path / "one-run") == 0
    assert capsys.readouterr().out.startswith("1 connection, 1 packet of TCP\n")


def test_a_capture_becomes_a_run_that_the_library_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    segments = w.conversation()
    lost = [*segments[:10], replace(segments[9], time_ns=segments[9].time_ns + 300_000_000, number=99)]
    lost += [replace(s, time_ns=s.time_ns + 300_000_000) for s in segments[10:]]
    file = w.write(tmp_path / "x.pcap", w.pcap(lost))
    assert called(monkeypatch, "analyse", file, "--out", tmp_path / "run", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    (entry,) = document["connections"]
    assert (entry["again"], entry["up"], list(entry["causes"])) == (1, 21_000, ["tlp"])
    assert 0.25 < entry["stalled_s"] < 0.35
    point = load(tmp_path / "run").point(document["point"])
    assert point.metrics["10.0.0.1:40000-10.0.0.2:80"]["retransmissions"] == 1
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    assert _shown(monkeypatch, capsys, ["show", tmp_path / "run", point.id]).count(f"testctl analyse {file}") == 1


def _shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Sequence[object]) -> str:
    assert called(monkeypatch, *words) == 0
    return capsys.readouterr().out


def test_a_file_that_can_not_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="can't be read: No such file"):
        scan(tmp_path / "none")


def test_ipv6_addresses_are_shown_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    segments = [replace(s, ends=("fd00::1", "fe80::2")) for s in w.conversation()]
    file = w.write(tmp_path / "x.pcap", w.pcap(segments))
    for number, end in enumerate(("fe80::2.80", "[fe80::2]:80", "[fe80::2]", "FE80:0::2", "fe80::2%eth0")):
        run = ("--out", tmp_path / f"{number}")
        assert called(monkeypatch, "analyse", file, "--only", end, *run) == 0
        assert "\nfd00::1.40000-fe80::2.80\n" in capsys.readouterr().out
    (point,) = (tmp_path / "0" / "points").iterdir()
    assert "fd00::1.40000-fe80::2.80" in _shown(monkeypatch, capsys, ["show", tmp_path / "0", point.name])


def test_the_same_file_twice_and_ends_that_are_exchanged(tmp_path: Path) -> None:
    raw = Path(__file__).parents[1] / "metrics" / "fixtures" / "loss" / "raw"
    ends = [raw / host / "capture.pcap" for host in ("sender", "receiver")]
    for argv, error in (
        ([ends[0], ends[0], "--at", "client"], "want two files of the two ends; got one twice"),
        ([*ends, "--at", "server"], "shortest round trip would be negative: exchange --at client and --at server"),
        ([tmp_path / "a\x1b[31m.pcap"], "want a file's name that can be shown"),
    ):
        done = CliRunner().invoke(app, ["analyse", *map(str, argv), "--out", str(tmp_path / "run")])
        assert error in str(done.exception), done.output
        assert list(tmp_path.iterdir()) == []


def test_the_list_has_the_senders_numbers_whatever_the_files_order(tmp_path: Path) -> None:
    raw = Path(__file__).parents[1] / "metrics" / "fixtures" / "loss" / "raw"
    ends = [str(raw / host / "capture.pcap") for host in ("sender", "receiver")]
    for number, files in enumerate((ends, ends[::-1])):
        done = CliRunner().invoke(app, ["analyse", *files, "--out", str(tmp_path / str(number)), "--json"])
        (listed,) = json.loads(done.stdout)["connections"]
        assert (listed["up"], listed["again"]) == (352_808, 71)
