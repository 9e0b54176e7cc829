# SPDX-License-Identifier: Apache-2.0
"""Requests to the three APIs as their documents say, when they are sent again, and what is an end."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.spec.units import Bytes
from testctl_influx.credentials import Credentials
from testctl_influx.send import MAX_PAUSE_S, Away, NotAllowed, Patience, Refused, Server
from testctl_influx.target import Destination, parse_target, write_request
from testctl_influx.upload import UploadOptions, batches, packed, upload

from plugins.influx.tests.scripted import Answer, scripted

TOKEN = Credentials(token="s3cret")
LINES = ["m,a=1 x=1.0 1", "m,a=2 x=2.0 2"]


class Clock:
    """Pauses that take no time, and are kept."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def patience(self, attempts: int = 5) -> Patience:
        return Patience(attempts, 0.5, random.Random(7), self.pauses.append)


def write(target: Destination, credentials: Credentials | None = None, patience: Patience | None = None) -> None:
    with httpx.Client() as client:
        Server(client, target, credentials or Credentials(), patience or Clock().patience()).detected().write(
            packed(LINES)
        )


@pytest.mark.parametrize(
    ("api", "path", "params", "authorization"),
    [
        ("1", "/write", {"db": "testctl", "precision": "ns", "rp": "year"}, "Bearer s3cret"),
        ("2", "/api/v2/write", {"org": "lab", "bucket": "tcp", "precision": "ns"}, "Token s3cret"),
        (
            "3",
            "/api/v3/write_lp",
            {"db": "testctl", "precision": "nanosecond", "accept_partial": "true"},
            "Bearer s3cret",
        ),
    ],
)
def test_a_write_is_what_the_documents_say(api: str, path: str, params: dict[str, str], authorization: str) -> None:
    more: dict[str, Any] = {"1": {"policy": "year"}, "2": {"org": "lab", "bucket": "tcp"}, "3": {}}[api]
    with scripted() as server:
        write(parse_target(server.url, api=api, **more), TOKEN)
        (asked,) = server.asked
    assert (asked.method, asked.path, asked.params) == ("POST", path, params)
    assert asked.headers["authorization"] == authorization
    assert asked.headers["content-encoding"] == "gzip"
    assert asked.lines == tuple(LINES)


@pytest.mark.parametrize(
    ("version", "status", "path"),
    [("1.8.10", 204, "/write"), ("v2.7.1", 204, "/api/v2/write"), ("3.0.1", 200, "/api/v3/write_lp")],
)
def test_a_server_is_asked_for_its_version_once(version: str, status: int, path: str) -> None:
    body = {"version": version, "revision": "0"} if status == 200 else ""
    with scripted(Answer(status, body, {"X-Influxdb-Version": version})) as server:
        write(parse_target(server.url, org="lab"))
        assert [asked.path for asked in server.asked] == ["/ping", path]


def test_version_3_is_told_who_asks_before_it_says_its_version() -> None:
    with scripted(Answer(200, {"version": "3.0.1"}, {"x-influxdb-version": "3.0.1"})) as server:
        write(parse_target(server.url), TOKEN)
        assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer s3cret"] * 2


@pytest.mark.parametrize(
    ("ping", "words"),
    [
        (Answer(401, {"error": "who are you"}), "want InfluxDB's version, or --api that says it; got 401 who are you"),
        (Answer(200, {"hello": 1}), "want InfluxDB's version, or --api"),
        (Answer(204, "", {"X-Influxdb-Version": "4.0.0"}), "want InfluxDB 1, 2 or 3.*got version '4.0.0'"),
        (Answer(204, "", {"X-Influxdb-Version": "v2.7.1"}), "want --org, which InfluxDB 2 needs"),
    ],
)
def test_a_server_that_is_no_target(ping: Answer, words: str) -> None:
    with scripted(ping) as server, pytest.raises((NotAllowed, PlanError), match=words):
        write(parse_target(server.url))


@pytest.mark.parametrize(
    ("url", "api", "base"),
    [
        ("http://db:8086", "", "http://db:8086"),
        ("http://db:8086/", "", "http://db:8086"),
        ("http://db:8086/write", "1", "http://db:8086"),
        ("https://db/influx/api/v3/write_lp", "3", "https://db/influx"),
    ],
)
def test_a_url_may_say_the_version(url: str, api: str, base: str) -> None:
    found = parse_target(url)
    assert (found.api, found.url) == (api, base)
    assert write_request(parse_target(url, api=api or "1"), TOKEN)[0].startswith(base)


@pytest.mark.parametrize(
    "url",
    [
        "db:8086", "ftp://db", "http://", "http://db/?q=1", "http://me:secret@db:8086", "http://db:abc", "http://db:99999",
        "http://[::1", "http://[foo]:8086", "http://me:secret@db:abc", f"http://{'a' * 70}\u00e4",
    ],
)  # fmt: skip
def test_a_url_that_can_not_be(url: str) -> None:
    with pytest.raises(PlanError, match="--url: want") as caught:
        parse_target(url)
    assert "secret" not in str(caught.value)


def test_a_busy_server_is_asked_again_after_pauses_that_grow() -> None:
    busy = (Answer(503, {"error": "later"}), Answer(429), Answer(500, {"error": "timeout"}))
    clock = Clock()
    with scripted(writes=busy) as server:
        write(parse_target(server.url, api="1"), patience=clock.patience())
        assert [asked.lines for asked in server.asked] == [tuple(LINES)] * 4
    for index, pause in enumerate(clock.pauses):
        assert 0.25 * 2**index <= pause <= 0.5 * 2**index
    assert len(set(clock.pauses)) == 3, "jitter"


@pytest.mark.parametrize(("asked", "pause"), [("7", 7.0), ("86400", MAX_PAUSE_S)])
def test_a_pause_is_as_long_as_the_server_asks_within_reason(asked: str, pause: float) -> None:
    clock = Clock()
    with scripted(writes=(Answer(429, "", {"Retry-After": asked}),)) as server:
        write(parse_target(server.url, api="2", org="lab"), patience=clock.patience())
    assert clock.pauses == [pause]


def test_a_server_that_stays_busy_is_away() -> None:
    with scripted(writes=(Answer(503, {"message": "hinted handoff"}),) * 3) as server:
        with pytest.raises(Away, match=r"testctl at .*: not there after 3 attempts: 503 hinted handoff"):
            write(parse_target(server.url, api="1"), patience=Clock().patience(3))
        assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (Answer(400, {"error": "partial write: points beyond retention policy dropped=2"}), Refused, "dropped=2"),
        (Answer(422, {"code": "unprocessable entity", "message": "conflict"}), Refused, "422 conflict"),
        (Answer(413), Refused, "413"),
        (
            Answer(
                400,
                {
                    "error": "partial write of line protocol occurred",
                    "data": [{"original_line": "m", "line_number": 2, "error_message": "no fields"}],
                },
            ),
            Refused,
            "partial write of line protocol occurred; line 2: no fields",
        ),
        (Answer(401, {"error": "authorization failed"}), NotAllowed, "401 authorization failed"),
        (Answer(404, {"error": "database not found"}), NotAllowed, "404 database not found"),
        (Answer(307, "", {"Location": "http://127.0.0.1:1/"}), NotAllowed, "307"),
    ],
)
def test_an_answer_that_is_an_end(answer: Answer, kind: type[TestbedError], words: str) -> None:
    with scripted(writes=(answer,)) as server:
        with pytest.raises(kind, match=words) as caught:
            write(parse_target(server.url, api="3"), TOKEN)
        assert len(server.asked) == 1, "not sent again, nowhere else"
    assert "s3cret" not in str(caught.value)


def test_who_is_not_let_in_loses_nothing_that_waits(tmp_path: Path) -> None:
    clock = Clock()
    options = UploadOptions(tmp_path, Bytes.parse("1MB"), clock.patience(1), most_lines=1)
    with scripted(writes=(Answer(503),)) as server:
        target = parse_target(server.url, api="2", org="lab")
        assert upload(LINES, target, TOKEN, options).waiting == 2
        server.writes.append(Answer(401))
        with pytest.raises(NotAllowed):
            upload([], target, TOKEN, options)
        assert upload([], target, TOKEN, options).replayed == 2
        assert [asked.lines for asked in server.asked[-2:]] == [(one,) for one in LINES], "in order"


@settings(max_examples=15)
@given(st.lists(st.sampled_from([204, 204, 429, 500, 503]), max_size=30), st.integers(1, 3))
def test_nothing_is_lost_doubled_or_overtaken_whatever_the_server_says(statuses: list[int], attempts: int) -> None:
    """Two uploads while the server answers so, and one when it is well."""
    lines = [f"m x={count}.0 {count}" for count in range(8)]
    with (
        tempfile.TemporaryDirectory() as spool,
        scripted(writes=tuple(Answer(status) for status in statuses)) as server,
    ):
        target = parse_target(server.url, api="3")
        options = UploadOptions(Path(spool), Bytes.parse("1MB"), Clock().patience(attempts), most_lines=2)
        for given_lines in (lines[:4], lines[4:], []):
            if not given_lines:
                server.writes.clear()
            done = upload(given_lines, target, TOKEN, options)
        assert (done.waiting, done.away, done.refusals) == (0, "", ())
        assert server.taken == lines


def test_batches_are_bounded_and_lose_nothing() -> None:
    lines = [f"m x={count}.0 {count}" for count in range(1000)]
    for most_lines, most_bytes in ((100, 10**6), (10**6, 200), (7, 50)):
        made = list(batches(lines, most_lines, most_bytes))
        assert [one for batch in made for one in batch] == lines
        assert all(len(batch) <= most_lines for batch in made)
        assert all(sum(len(one) + 1 for one in batch) <= most_bytes for batch in made)
    assert list(batches(["x" * 100, "y"], 5, 50)) == [["x" * 100], ["y"]]
    assert packed(lines) == packed(iter(lines))


def test_a_batch_that_was_damaged_on_disk_is_never_sent(tmp_path: Path) -> None:
    lines = [f"m x={number}.0 {number}" for number in range(3)]
    with scripted(writes=(Answer(503),) * 2) as server:
        options = UploadOptions(tmp_path, Bytes.parse("1MB"), Clock().patience(2), most_lines=1)
        assert upload(lines, Destination(server.url, api="1"), TOKEN, options).waiting == 3
        first, second, _ = sorted((tmp_path / Destination(server.url, api="1").key).glob("*.lp.gz"))
        first.write_bytes(b"")
        second.write_bytes(packed(["m x=9.0 1"]))
        done = upload([], Destination(server.url, api="1"), TOKEN, options)
        assert server.taken == lines[2:]
    assert (done.written, done.replayed, done.waiting, len(done.refusals)) == (1, 1, 0, 2)
    assert "want the batch of this digest; got 0 bytes" in done.refusals[0]
    assert "upload its run again" in done.refusals[1]


def test_an_answer_that_can_not_be_decoded_is_none_yet(tmp_path: Path) -> None:
    odd = Answer(200, {"x": 1}, {"Content-Encoding": "gzip"})
    with scripted(writes=(odd,) * 2) as server, pytest.raises(Away, match="not there after 2 attempts"):
        write(parse_target(server.url, api="1"), patience=Clock().patience(2))


def test_certificates_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    options = UploadOptions(tmp_path / "spool", Bytes.parse("1MB"), Clock().patience(1))
    with pytest.raises(PlanError, match=r"SSL_CERT_FILE=.*/none.*: want certificates; got: No such file"):
        upload(LINES, parse_target("https://127.0.0.1:1", api="1"), TOKEN, options)
    (tmp_path / "none").write_text("no certificate", encoding="utf-8")
    with pytest.raises(PlanError, match=r"SSL_CERT_FILE=.*/none.*: want certificates; got: "):
        upload(LINES, parse_target("https://127.0.0.1:1", api="1"), TOKEN, options)


def test_a_refused_batch_that_waited_goes_to_the_others_in_a_full_spool(tmp_path: Path) -> None:
    """Its place was there already; the batches behind it are written."""
    lines = [f"m x={number}.0 {number}" for number in range(3)]
    size = sum(len(packed([one])) for one in lines)
    options = UploadOptions(tmp_path, Bytes(size), Clock().patience(1), most_lines=1)
    with scripted(writes=(Answer(503), Answer(400, {"error": "too old"}))) as server:
        target = parse_target(server.url, api="1")
        assert upload(lines, target, TOKEN, options).waiting == 3
        done = upload([], target, TOKEN, options)
        assert server.taken == lines[1:]
    assert (done.written, done.waiting, len(done.refusals)) == (2, 0, 1)


def test_refused_batches_without_a_place_do_not_keep_others_from_the_server(tmp_path: Path) -> None:
    """New ones, and one that waited: it is forgotten, and the error says so, once."""
    lines = [f"m x={number}.0 {number}" for number in range(5)]
    options = UploadOptions(tmp_path, Bytes(len(packed(lines[:1])) + 5), Clock().patience(1), most_lines=1)
    refused = Answer(400, {"error": "field type conflict"})
    with scripted(writes=(refused, refused, Answer(), Answer(503), refused)) as server:
        target = parse_target(server.url, api="1")
        done = upload(lines[:4], target, TOKEN, options)
        assert (done.written, done.waiting, len(done.refusals)) == (1, 1, 2)
        assert "/refused/" in done.refusals[0]
        assert "conflict (not kept: " in done.refusals[1]
        assert "(--spool-limit); look at them and remove them, and upload the run again" in done.refusals[1]
        done = upload(lines[4:], target, TOKEN, options)
        assert (done.written, done.waiting, len(done.refusals)) == (1, 0, 1)
        assert server.taken == [lines[2], lines[4]]


def test_a_proxy_of_the_environment_gets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted() as server, scripted() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("no_proxy", "")
        options = UploadOptions(tmp_path / "spool", Bytes.parse("1MB"), Clock().patience(1))
        done = upload(LINES, parse_target(server.url, api="1", database="testctl"), TOKEN, options)
    assert (done.written, done.away) == (1, "")
    assert server.taken == LINES
    assert proxy.asked == []
