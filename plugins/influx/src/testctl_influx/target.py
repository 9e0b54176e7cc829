# SPDX-License-Identifier: Apache-2.0
"""Where lines go: an InfluxDB of version 1, 2 or 3, and the request that writes to it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from urllib.parse import urlsplit, urlunsplit

import httpx
from testctl_agent.spec.errors import PlanError

from testctl_influx.credentials import Credentials

ENDS = {"1": "/write", "2": "/api/v2/write", "3": "/api/v3/write_lp"}
"""The path that lines are posted to, by version: https://docs.influxdata.com/influxdb, v1, v2 and 3 core."""


@dataclass(frozen=True)
class Destination:
    """A server and a place in it.

    url       without a path of ENDS; what a proxy puts before it stays
    api       "1", "2" or "3"; "" is not known yet
    database  of 1 and 3; the bucket of 2 where `bucket` is ""
    org       of 2
    policy    retention policy of 1; "" is the database's default
    """

    url: str
    api: str = ""
    database: str = "testctl"
    org: str = ""
    bucket: str = ""
    policy: str = ""

    @property
    def place(self) -> str:
        """What is written to, in words."""
        name = self.bucket if self.bucket and self.api in ("", "2") else self.database
        return f"{name} at {self.url}"

    @property
    def key(self) -> str:
        """A name of letters and digits for all that goes to this place, whatever the server's version."""
        parts = [self.url, self.database, self.org, self.bucket, self.policy]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def parse_target(
    url: str, *, api: str = "", database: str = "testctl", org: str = "", bucket: str = "", policy: str = ""
) -> Destination:
    """A target by what a user says; a URL that ends in a path of ENDS says the version too.  Raises PlanError."""
    try:
        parts = urlsplit(url)
        right = bool(httpx.URL(url).host) and parts.port != 0 and parts.scheme in ("http", "https")
    except (ValueError, httpx.InvalidURL):
        right = False
    if not right or parts.query or parts.fragment:
        raise PlanError(f"--url: want one such as http://127.0.0.1:8086; got {_without_password(url)!r}")
    if parts.username is not None or parts.password is not None:
        raise PlanError(
            f"--url: want no user and password in it (a file or the environment holds them); "
            f"got {_without_password(url)!r}"
        )
    path = parts.path.rstrip("/")
    for version, end in sorted(ENDS.items(), reverse=True):
        if path.endswith(end):
            api, path = api or version, path.removesuffix(end)
            break
    if api not in ("", *ENDS):
        raise PlanError(f"--api: want 1, 2 or 3; got {api!r}")
    if not database:
        raise PlanError(f"{url}: want a --database; got none")
    base = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    return checked(Destination(base, api, database, org, bucket, policy))


def checked(target: Destination) -> Destination:
    """The target, if its version has all it needs; else PlanError."""
    if target.api == "2" and not target.org:
        raise PlanError(f"{target.url}: want --org, which InfluxDB 2 needs; got none")
    if target.api in ("2", "3") and target.policy:
        raise PlanError(f"{target.url}: want no --policy: InfluxDB {target.api} has none; got {target.policy!r}")
    return target


def with_version(target: Destination, version: str) -> Destination:
    """The target, its API that of a server's version such as 1.6.7~rc0, v2.7.1 or 3.0.1.  Raises PlanError."""
    major = version.removeprefix("v").partition(".")[0]
    if major not in ENDS:
        raise PlanError(f"{target.url}: want InfluxDB 1, 2 or 3, or --api that says which; got version {version!r}")
    return checked(replace(target, api=major))


def write_request(target: Destination, credentials: Credentials) -> tuple[str, dict[str, str], dict[str, str]]:
    """(URL, parameters, headers) of a request that writes gzipped lines with times in ns, once the API is known."""
    params = {
        "1": {"db": target.database, "precision": "ns", **({"rp": target.policy} if target.policy else {})},
        "2": {"org": target.org, "bucket": target.bucket or target.database, "precision": "ns"},
        "3": {"db": target.database, "precision": "nanosecond", "accept_partial": "true"},
    }[target.api]
    headers = {"Content-Type": "text/plain; charset=utf-8", "Content-Encoding": "gzip"}
    return target.url + ENDS[target.api], params, headers | credentials.headers(target.api)


def _without_password(url: str) -> str:
    before, at, after = url.rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else url
