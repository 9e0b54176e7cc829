# SPDX-License-Identifier: Apache-2.0
"""Stateful TRex (ASTF): TCP connections at a constant rate, each of which carries some bytes from client to server."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from testctl_agent.spec.errors import TestbedError

from testctl_hardware.trex_load import Load, Mode

API = ("ASTF", 2, 3)
PROFILE = "_"
_LOADED, _SENDS = 1, 4
_PASSING = (2, 3, 5)
"""States on the way to another: parse, build, clean up."""
_STEADY_S, _LOOK_S = 60.0, 0.05
_FRAGMENT_BYTES = 1000
_COUNTERS = {
    "connections": "tcps_connects",
    "bytes": "tcps_sndbyte_ok",
    "retransmissions": "tcps_sndrexmitpack",
    "received_bytes": "tcps_rcvbyte",
    "drops": "tcps_drops",
}


def profile(load: Load) -> dict[str, Any]:
    """The profile as the server's JSON: one template, and for each side one range with one address."""
    sent = {"base": base64.b64encode(b"testctl ").decode(), "size": load.flow_bytes}
    ranges = [
        {"dir": side, "distribution": "seq", "ip_start": address, "ip_end": address, "ip_offset": "0.0.0.0"}
        for side, address in (("c", load.source), ("s", load.sink))
    ]
    client = {
        "program_index": 0, "port": load.sink_port, "cps": load.rate / (8 * load.flow_bytes), "cluster": {},
        "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}},
    }  # fmt: skip
    return {
        "buf_list": [sent],
        "ip_gen_dist_list": ranges,
        "program_list": [
            {"commands": [{"name": "tx", "buf_index": 0}]},
            {"commands": [{"name": "rx", "min_bytes": load.flow_bytes}]},
        ],
        "templates": [
            {
                "client_template": client,
                "server_template": {"program_index": 1, "assoc": [{"port": load.sink_port}]},
                "tg_id": 0,
            }
        ],
        "tg_names": [],
    }


def fragments(text: str) -> Iterator[dict[str, Any]]:
    """The parameters of each profile_fragment request."""
    pieces = [text[at : at + _FRAGMENT_BYTES] for at in range(0, len(text), _FRAGMENT_BYTES)]
    for number, piece in enumerate(pieces):
        given: dict[str, Any] = {"fragment": piece}
        if number == 0:
            given["frag_first"] = True
            if len(pieces) > 1:
                given["md5"] = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        if number == len(pieces) - 1:
            given["frag_last"] = True
        yield given


def check(load: Load) -> None:
    """Raises TestbedError for a load that a profile can't express."""
    if not 1 <= load.flow_bytes <= 10**9:
        raise TestbedError(f"trex: want bytes from 1 to 1000000000; got {load.flow_bytes}")
    load.check_addresses()


def summary(described: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The increase of the relevant counters, by their names in get_counter_desc; a missing counter is 0."""
    rows = described.get("data", []) if isinstance(described, Mapping) else described
    numbers = {row["name"]: str(row["id"]) for row in rows if isinstance(row, Mapping) and "name" in row}
    if absent := sorted(set(_COUNTERS.values()) - numbers.keys()):
        raise TestbedError(f"trex: get_counter_desc: want {', '.join(absent)}; got {len(numbers)} other counters")

    def count(side: str, what: str) -> int:
        number = numbers[_COUNTERS[what]]
        return int(after.get(side, {}).get(number, 0)) - int(before.get(side, {}).get(number, 0))

    return {
        "connections": count("client", "connections"),
        "bytes_sent": count("client", "bytes"),
        "bytes_received": count("server", "received_bytes"),
        "retransmissions": count("client", "retransmissions"),
        "drops": count("client", "drops"),
    }


class Stateful(Mode):
    """One load on a server in ASTF mode."""

    def prepare(self) -> None:
        """Acquire the server, and load the profile."""
        self._client.sync(*API)
        found = self._client.call("acquire", user=self._load.user, session_id=0, force=self._load.force)
        self._right = {"handler": found["handler"], "profile_id": PROFILE}
        self._steady()
        self._client.call("profile_clear", **self._right)
        self._steady()
        for given in fragments(json.dumps(profile(self._load), sort_keys=True)):
            self._client.call("profile_fragment", **self._right, **given)
        if (state := self._steady()) != _LOADED:
            raise TestbedError(f"trex {self._client.where}: the profile was not loaded: state {state}")

    def _state(self) -> int:
        found = self._client.call("sync", profile_id=PROFILE)
        return int((found.get("state_profile") or {}).get(PROFILE, found.get("state", 0)))

    def _steady(self) -> int:
        """Wait for a stable state, and return it."""
        end = time.monotonic() + _STEADY_S
        while (state := self._state()) in _PASSING:
            if time.monotonic() > end:
                raise TestbedError(f"trex {self._client.where}: stays in state {state} for {_STEADY_S:g} s")
            time.sleep(_LOOK_S)
        return state

    def start(self) -> None:
        self._before = self._client.call("get_counter_values", profile_id=PROFILE)
        self._client.call(
            "start", **self._right, duration=self._load.duration_s, mult=1.0, nc=True, ipv6=False,
            latency_pps=self._load.latency_pps, client_mask=2**32 - 1,
        )  # fmt: skip

    def running(self) -> bool:
        return self._state() in (_SENDS, *_PASSING)

    def stop(self) -> None:
        self._client.call("stop", **self._right)
        self._steady()

    def result(self) -> dict[str, Any]:
        described = self._client.call("get_counter_desc", profile_id=PROFILE)
        found = summary(described, self._before, self._client.call("get_counter_values", profile_id=PROFILE))
        if self._load.latency_pps:
            found["latency"] = self._client.call("get_latency_stats")
        return found

    def close(self) -> None:
        """Release the server without a profile."""
        if self._right:
            self._client.call("profile_clear", **self._right)
            self._steady()
            self._client.call("release", handler=self._right["handler"])
            self._right = {}
