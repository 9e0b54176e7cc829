# SPDX-License-Identifier: Apache-2.0
"""Uploading to a real InfluxDB 1.x: all is there, twice is once, and an outage loses and doubles nothing."""

from __future__ import annotations

import gzip
import json
import math
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from testctl.results import Run
from testctl_influx.credentials import Credentials
from testctl_influx.measurements import MEASUREMENTS
from testctl_influx.rows import started_ns, summary_lines
from testctl_influx.send import NotAllowed
from testctl_influx.target import Destination, parse_target
from testctl_influx.upload import Done, upload

from plugins.influx.tests.compared import differences, lines_of, options
from plugins.influx.tests.influxd import Influxd, running
from plugins.influx.tests.nights import call


def send(run: Run, influxd: Influxd, spool: Path) -> Done:
    return upload(lines_of(run), parse_target(influxd.url), Credentials(), options(spool))


def test_all_of_a_run_is_there_and_twice_is_once(run: Run, influxd: Influxd, tmp_path: Path) -> None:
    done = send(run, influxd, tmp_path)
    assert (done.waiting, done.away, done.refusals) == (0, "", ())
    assert differences(run, influxd) == []
    once = influxd.dump()
    assert {name: len(rows) for name, rows in once.items()} == counted(lines_of(run))
    assert send(run, influxd, tmp_path) == done
    assert influxd.dump() == once


def counted(lines: list[str]) -> dict[str, int]:
    return Counter(one.partition(",")[0] for one in lines)


def test_tags_and_fields_are_those_that_are_documented(run: Run, influxd: Influxd, tmp_path: Path) -> None:
    send(run, influxd, tmp_path)
    parameters = {f"{entity}.{name}" for point in run.points for entity, name, _ in point.tuples}
    of_several = {"series_fairness"}  # connections, of which this run's points have one
    assert {row["name"] for row in influxd.rows("SHOW MEASUREMENTS")} == set(MEASUREMENTS) - of_several
    for name, spec in MEASUREMENTS.items():
        if name in of_several:
            continue
        tags = {row["tagKey"] for row in influxd.rows(f'SHOW TAG KEYS FROM "{name}"')}
        wanted = {*spec.tags, *(parameters if spec.parameters else ())} - {
            "kernel",
            "options",
        }  # a made-up run has none
        assert tags == wanted, name
        fields = {row["fieldKey"]: row["fieldType"] for row in influxd.rows(f'SHOW FIELD KEYS FROM "{name}"')}
        if not spec.of_metrics:
            assert fields == {field: "string" if field in spec.texts else "float" for field in spec.fields}, name


def test_series_sum_to_the_bytes_on_the_wire(run: Run, influxd: Influxd, tmp_path: Path) -> None:
    send(run, influxd, tmp_path)
    sums = {
        row["point"]: row["sum"] for row in influxd.rows("SELECT sum(wire_bytes) FROM series_throughput GROUP BY point")
    }
    assert sums == {point.id: point.metrics["bulk"]["wire_bytes"] for point in run.points if point.has_records}


def test_what_an_outage_leaves_goes_first_next_time(run: Run, influxd: Influxd, tmp_path: Path) -> None:
    """The server stops after the second batch of many, and is back for the next upload."""
    lines, target, small = lines_of(run), parse_target(influxd.url), options(tmp_path, most_lines=50)
    batch = math.ceil(len(lines) / 50)

    def cut_off() -> Any:
        for count, one in enumerate(lines):
            if count == 110:  # the third batch is not full yet
                influxd.stop()
            yield one

    done = upload(cut_off(), target, Credentials(), small)
    assert (done.written, done.waiting) == (2, batch - 2)
    assert "not there after 2 attempts" in done.away
    kept = sorted((tmp_path / target.key).glob("*.lp.gz"))
    assert len(kept) == batch - 2
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    again = upload(lines, target, Credentials(), small)
    assert again.waiting == batch, "those that waited are not kept twice"
    influxd.start()
    back = upload(lines, target, Credentials(), small)
    assert (back.replayed, back.written, back.waiting, back.away) == (batch, 2 * batch, 0, "")
    through_outage = influxd.dump()
    influxd.make("testctl")
    send(run, influxd, tmp_path / "other")
    assert influxd.dump() == through_outage


def test_a_batch_that_is_refused_is_kept_and_the_others_go_on(run: Run, influxd: Influxd, tmp_path: Path) -> None:
    influxd.write(f'points wall_s="text, where numbers are to come" {started_ns(run)}')
    target = parse_target(influxd.url)
    done = upload(lines_of(run), target, Credentials(), options(tmp_path, most_lines=50))
    assert (done.waiting, len(done.refusals)) == (0, 1)
    assert done.written == math.ceil(len(lines_of(run)) / 50) - 1
    (refused,) = (tmp_path / target.key / "refused").glob("*.lp.gz")
    assert "field type conflict" in done.refusals[0]
    assert str(refused) in done.refusals[0]
    assert "field type conflict" in refused.with_name(refused.name.replace(".lp.gz", ".txt")).read_text(
        encoding="utf-8"
    )
    assert any(one.startswith(b"points,") for one in gzip.decompress(refused.read_bytes()).splitlines())


def test_no_database_is_said_so(run: Run, influxd: Influxd, tmp_path: Path) -> None:
    target = Destination(influxd.url, database="nowhere")
    with pytest.raises(NotAllowed, match=r'nowhere at .*: 404 database not found: "nowhere"'):
        upload(lines_of(run), target, Credentials(), options(tmp_path))
    assert list((tmp_path / target.key).glob("*.lp.gz")) == []


def test_no_policy_is_said_so_and_one_that_is_there_is_written_to(run: Run, influxd: Influxd, tmp_path: Path) -> None:
    target = parse_target(influxd.url, policy="long")
    with pytest.raises(NotAllowed, match="500 retention policy not found: long"):
        upload(summary_lines(run), target, Credentials(), options(tmp_path))
    influxd.ask("CREATE RETENTION POLICY long ON testctl DURATION INF REPLICATION 1")
    assert upload(summary_lines(run), target, Credentials(), options(tmp_path)).written == 1
    assert len(influxd.rows("SELECT * FROM long.points")) == len(run.points)
    assert influxd.rows("SELECT * FROM points") == []


def test_what_is_older_than_the_retention_is_refused_and_said_so(run: Run, influxd: Influxd, tmp_path: Path) -> None:
    influxd.ask("ALTER RETENTION POLICY autogen ON testctl DURATION 1h SHARD DURATION 0s")
    done = upload(summary_lines(run), parse_target(influxd.url), Credentials(), options(tmp_path))
    assert (done.written, done.waiting, len(done.refusals)) == (0, 0, 1)
    assert "400 partial write: points beyond retention policy" in done.refusals[0]


def test_the_command(run: Run, influxd: Influxd, tmp_path: Path) -> None:
    words = ("upload", str(run.path), "--url", influxd.url, "--spool", str(tmp_path), "--attempts", "1")
    done = call(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["lines"] == len(lines_of(run))
    assert differences(run, influxd) == []
    influxd.stop()
    done = call(*words, "--series", "none")
    influxd.start()
    assert done.returncode == 3
    assert "not there after 1 attempts" in done.stderr
    assert "1 batch waits in" in done.stderr
    done = call(*words, "--series", "none")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 batches written (1 that waited)" in done.stdout


def test_only_who_may_write_writes(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that asks for credentials, a user of it, and one who is let in nowhere."""
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server", ("root", "r00t")) as server:
        server.ask("CREATE USER root WITH PASSWORD 'r00t' WITH ALL PRIVILEGES")
        server.ask("CREATE USER writer WITH PASSWORD 's3cret'")
        server.make("testctl")
        server.ask("GRANT ALL ON testctl TO writer")
        file = tmp_path / "credentials.yaml"
        file.write_text("user: writer\npassword: s3cret\n", encoding="utf-8")
        file.chmod(0o600)
        argv = [sys.executable, "-m", "testctl.cli.main", "upload", str(run.path), "--url", server.url]
        argv += ["--spool", str(tmp_path / "spool"), "--series", "none"]
        monkeypatch.setenv("TESTCTL_INFLUX_USER", "writer")
        monkeypatch.setenv("TESTCTL_INFLUX_PASSWORD", "wr0ng")
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert "401 authorization failed" in done.stderr
        assert "wr0ng" not in done.stdout + done.stderr
        done = subprocess.run([*argv, "--credentials", str(file)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert differences(run, server) == []
        kept = [path for path in (tmp_path / "spool").rglob("*") if path.is_file()]
        assert all(b"s3cret" not in path.read_bytes() for path in kept)


def test_an_upload_that_is_killed_is_made_whole_by_the_next(run: Run, influxd: Influxd, tmp_path: Path) -> None:
    """Killed without a word once some batches are there, and the server too."""
    argv = [sys.executable, "-m", "plugins.influx.tests.killed_upload", str(run.path), influxd.url, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    assert 0 < sum(map(len, influxd.dump().values())) < len(lines_of(run))
    influxd.stop(signal.SIGKILL)
    influxd.start()
    assert send(run, influxd, tmp_path).waiting == 0
    assert {name: len(rows) for name, rows in influxd.dump().items()} == counted(lines_of(run))
    assert differences(run, influxd) == []
