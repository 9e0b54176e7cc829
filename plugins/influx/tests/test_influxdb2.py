# SPDX-License-Identifier: Apache-2.0
"""Uploading to a real InfluxDB 2.x, which TESTCTL_INFLUXD2 names: it holds and answers the same as InfluxDB 1.x."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from testctl.results import Run
from testctl_influx.credentials import Credentials
from testctl_influx.rows import started_ns
from testctl_influx.target import Destination, parse_target
from testctl_influx.upload import Done, upload

from plugins.influx.tests.compared import differences, lines_of, options
from plugins.influx.tests.influxd import Influxd
from plugins.influx.tests.influxd2 import ORG, PROGRAM, REASON, TOKEN, Influxd2, running2
from plugins.influx.tests.nights import BOARDS, Nights, call, night, real_run

pytestmark = pytest.mark.skipif(not PROGRAM, reason=REASON)


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd2]:
    """A running InfluxDB 2."""
    with running2(tmp_path_factory.mktemp("influxd2")) as made:
        yield made


@pytest.fixture
def influxd2(second: Influxd2) -> Influxd2:
    """A running InfluxDB 2 with an empty bucket "testctl"."""
    second.start()
    second.make("testctl")
    return second


def target(influxd2: Influxd2) -> Destination:
    return parse_target(influxd2.url, org=ORG)


def send(run: Run, influxd2: Influxd2, spool: Path, most_lines: int = 5000) -> Done:
    return upload(lines_of(run), target(influxd2), Credentials(token=TOKEN), options(spool, most_lines))


def test_it_holds_what_influxdb_1_holds_and_twice_is_once(
    run: Run, influxd: Influxd, influxd2: Influxd2, tmp_path: Path
) -> None:
    done = send(run, influxd2, tmp_path / "2")
    assert (done.waiting, done.away, done.refusals) == (0, "", ())
    assert differences(run, influxd2) == []
    once = influxd2.dump()
    assert sum(map(len, once.values())) == len(lines_of(run)), "nothing is lost or doubled"
    upload(lines_of(run), parse_target(influxd.url), Credentials(), options(tmp_path / "1"))
    assert once == influxd.dump()
    assert send(run, influxd2, tmp_path / "2") == done
    assert influxd2.dump() == once


def test_what_an_outage_leaves_goes_first_next_time(run: Run, influxd2: Influxd2, tmp_path: Path) -> None:
    influxd2.stop()
    away = send(run, influxd2, tmp_path, most_lines=100)
    influxd2.start()
    batches = math.ceil(len(lines_of(run)) / 100)
    assert (away.written, away.waiting) == (0, batches)
    back = send(run, influxd2, tmp_path, most_lines=100)
    assert (back.replayed, back.written, back.waiting, back.refusals) == (batches, 2 * batches, 0, ())
    assert differences(run, influxd2) == []


def test_a_batch_that_is_refused_is_kept_and_the_others_go_on(run: Run, influxd2: Influxd2, tmp_path: Path) -> None:
    assert influxd2.write(f'points wall_s="text, where numbers are to come" {started_ns(run)}').status_code == 204
    done = send(run, influxd2, tmp_path, most_lines=50)
    assert (done.waiting, len(done.refusals)) == (0, 1)
    assert done.written == math.ceil(len(lines_of(run)) / 50) - 1
    assert "422 failure writing points to database: partial write: field type conflict" in done.refusals[0]


@pytest.mark.parametrize(
    ("who", "words", "code", "said"),
    [
        ("write", ("--org", ORG, "--bucket", "own"), 0, ""),
        ("read", ("--org", ORG, "--bucket", "own"), 3, "own at http.*: 403 insufficient permissions for write"),
        ("wrong", ("--org", ORG, "--bucket", "own"), 3, "own at http.*: 401 unauthorized access"),
        ("all", ("--org", ORG, "--bucket", "nowhere"), 3, 'nowhere at http.*: 404 bucket "nowhere" not found'),
        ("all", ("--org", "nobody"), 3, 'testctl at http.*: 404 organization name "nobody" not found'),
        ("all", ("--org", ORG, "--bucket", "short"), 3, "422 .*outside retention policy of duration 1h0m0s"),
        ("all", ("--org", ORG, "--policy", "long"), 2, "want no --policy: InfluxDB 2 has none"),
        ("all", (), 2, "want --org, which InfluxDB 2 needs; got none"),
    ],
)
def test_the_command_says_what_is_wrong(
    run: Run, influxd2: Influxd2, tmp_path: Path, who: str, words: tuple[str, ...], code: int, said: str
) -> None:
    for name, keep_s in (("own", 0), ("short", 3600)):
        influxd2.make(name, keep_s)
    token = {"all": TOKEN, "wrong": "wr0ng"}.get(who) or influxd2.token(who, "own")
    file = tmp_path / "credentials.yaml"
    file.write_text(f"token: {token}\n", encoding="utf-8")
    file.chmod(0o600)
    more = ("--url", influxd2.url, "--credentials", str(file), "--spool", str(tmp_path), "--series", "none")
    done = call("upload", str(run.path), *more, *words)
    assert done.returncode == code, done.stderr
    assert re.search(said, done.stderr)
    assert token not in done.stdout + done.stderr
    if code == 0:
        assert differences(run, influxd2, "own") == []


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory, server: Influxd, second: Influxd2) -> tuple[Nights, Nights]:
    """A real run and two later nightly runs in both; in InfluxDB 2 the bucket has not the name of the database."""
    first = real_run(tmp_path_factory.mktemp("real"))
    runs = (first, night(first, 1), night(first, 2))
    spool = tmp_path_factory.mktemp("spool")
    server.make("testctl")
    second.make("runs of tcp")
    second.remove("testctl")
    second.map("runs of tcp", "testctl")
    for one in runs:
        for target in (parse_target(server.url), parse_target(second.url, org=ORG, bucket="runs of tcp")):
            done = upload(lines_of(one), target, Credentials(token=TOKEN if target.org else ""), options(spool))
            assert (done.waiting, done.refusals) == (0, ())
    return Nights(server, runs), Nights(second, runs)


@pytest.mark.lab
@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_dashboard_shows_the_same_of_both(nights: tuple[Nights, Nights], path: Path) -> None:
    one, two = nights
    choices = two.choices(path)
    assert choices == one.choices(path)
    assert two.silent(path, choices) == []
    assert two.answers(path, choices) == one.answers(path, choices)
