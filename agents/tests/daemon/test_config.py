# SPDX-License-Identifier: Apache-2.0
"""The daemon's configuration: what is right is read, what is wrong is refused with file and key."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl_agent.daemon import config
from testctl_agent.engine import factory
from testctl_agent.engine.attest import attest
from testctl_agent.spec.errors import PlanError
from testctl_agent.switch import backend
from testctl_agent.system.entry_points import BACKENDS

from agents.tests.system.made_up import BACKEND, on_path, write
from agents.tests.system.made_up import BACKENDS as GROUP

BACKENDS_THERE = ", ".join(sorted({*backend.own(), "fake", *BACKENDS.names()}))
HOST: dict[str, Any] = {
    "name": "alpha",
    "kind": "host",
    "devices": {"alpha": "eth1"},
    "listen": "192.0.2.11:7400",
    "workdir": "/var/lib/testctl/work",
    "journal": "/var/lib/testctl/journal.jsonl",
    "tls": {
        "authority": "/etc/testctl/ca.crt",
        "certificate": "/etc/testctl/agent.crt",
        "key": "/etc/testctl/agent.key",
        "controllers": ["controller"],
    },
}
SWITCH: dict[str, Any] = HOST | {
    "name": "s1",
    "kind": "switch",
    "devices": {"s1:alpha": "p1", "s1:beta": "p2"},
    "backend": "fake",
    "forwarding": {"02:00:00:00:00:01": "p1"},
    "limits": {"tasks": 3},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in HOST.items() if name != key}


def test_a_host() -> None:
    found = config.parse(json.dumps(HOST), "a.json")
    assert (found.agent.name, found.agent.kind, found.agent.devices) == ("alpha", "host", {"alpha": "eth1"})
    assert (found.listen, found.lease, found.limits) == ("192.0.2.11:7400", True, config.DEFAULT_LIMITS)
    assert found.tls is not None
    assert found.tls.controllers == ("controller",)


def test_a_switch() -> None:
    found = config.parse(json.dumps(SWITCH), "s.json")
    assert (found.agent.backend, found.agent.forwarding) == ("fake", {"02:00:00:00:00:01": "p1"})
    assert (found.limits.tasks, found.limits.message_bytes) == (3, config.DEFAULT_LIMITS.message_bytes)


def test_front_panel_ports_need_a_back_end_whose_ports_they_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = {"devices": {"s1:alpha": "3/0", "s1:beta": "132"}, "forwarding": {"02:00:00:00:00:01": "3/0"}}
    with on_path(write(tmp_path, "testctl-loom", {GROUP: {"loom": "testctl_loom"}}, {"testctl_loom": BACKEND})):
        found = config.parse(json.dumps(SWITCH | front | {"backend": "loom"}), "s.json")
        assert found.agent.devices == front["devices"]
        state = factory.prepare(replace(found.agent, workdir=tmp_path, journal=tmp_path / "journal"))
        assert state.engine.entities["s1:alpha"].device == "3/0"
        assert not [name for name in attest(state.devices) if "3/0" in name]
        for wrong in ("3/", "3/0/1", "../0", "a/0"):
            with pytest.raises(PlanError, match="devices: want names of network devices"):
                config.parse(json.dumps(SWITCH | {"backend": "loom", "devices": {"s1:alpha": wrong}}), "s.json")
    with pytest.raises(PlanError, match=r"s\.json: devices: want names of network devices"):
        config.parse(json.dumps(SWITCH | front | {"backend": "ebpf"}), "s.json")


def test_without_tls_there_is_a_unix_socket_and_no_lease() -> None:
    found = config.parse(json.dumps(without("tls") | {"listen": "unix:/run/a.sock"}), "a.json")
    assert (found.tls, found.lease) == (None, False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "a.json: want JSON; Expecting value: line 1 column 1 (char 0)"),
        ("[]", "a.json: want a JSON object; got list"),
        ('{"name": "a", "name": "b"}', "a.json: name: want each key once; got it twice"),
        (HOST | {"nmae": 1}, "a.json: nmae: want one of the keys backend, devices, forwarding, generators, journal"),
        (without("journal"), "a.json: journal: want an absolute path; it is missing"),
        (HOST | {"workdir": "work"}, 'a.json: workdir: want an absolute path; got "work"'),
        (HOST | {"workdir": "/var/../etc"}, 'a.json: workdir: want an absolute path; got "/var/../etc"'),
        (HOST | {"name": "a/b"}, 'a.json: name: want a name such as alpha; got "a/b"'),
        (HOST | {"kind": "port"}, 'a.json: kind: want "host" or "switch"; got "port"'),
        (HOST | {"devices": {"beta": "eth1"}}, 'a.json: devices: want {"alpha": its device}; got {"beta": "eth1"}'),
        (HOST | {"devices": {"alpha": "../x"}}, "a.json: devices: want names of network devices"),
        (HOST | {"backend": "ebpf"}, "a.json: backend: want no such key of a host"),
        (HOST | {"generators": ["tgen", 5]}, 'a.json: generators: want a list of generators; got ["tgen", 5]'),
        (HOST | {"generators": ["tgen", "x"]}, "a.json: generators: want one of iperf3, tgen"),
        (SWITCH | {"generators": []}, "a.json: generators: want no such key of a switch"),
        (without("tls"), "a.json: listen: want an address that begins with unix: where there is no tls"),
        (HOST | {"listen": "alpha:7400"}, "a.json: listen: want an address such as"),
        (HOST | {"listen": "192.0.2.11:70000"}, "a.json: listen: want an address such as"),
        (HOST | {"tls": HOST["tls"] | {"controllers": []}}, "a.json: tls.controllers: want a list of the common names"),
        (HOST | {"tls": HOST["tls"] | {"crl": "/x"}}, "a.json: tls.crl: want one of the keys authority, certificate"),
        (HOST | {"lease": 1}, "a.json: lease: want true or false; got 1"),
        (HOST | {"limits": {"tasks": True}}, "a.json: limits.tasks: want a whole number from 1 to 10000; got true"),
        (SWITCH | {"backend": "x"}, f'a.json: backend: want one of {BACKENDS_THERE}; got "x"'),
        (SWITCH | {"devices": {"alpha": "p1"}}, 'a.json: devices: want {"s1:HOST": device, …}; got {"alpha": "p1"}'),
        (SWITCH | {"devices": {"s1:a": "p1", "s1:b": "p1"}}, "a.json: devices: want each device once"),
        (SWITCH | {"forwarding": {"02:00:00:00:00:01": "p9"}}, "a.json: forwarding: want MAC addresses such as"),
    ],
)
def test_what_is_wrong_is_named(given: Any, words: str) -> None:
    with pytest.raises(PlanError) as refused:
        config.parse(given if isinstance(given, str) else json.dumps(given), "a.json")
    assert str(refused.value).startswith(words)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"nothing\.json: can't be read: No such file or directory"):
        config.load(tmp_path / "nothing.json")


@settings(max_examples=300)
@given(whole=st.sampled_from([HOST, SWITCH]), key=st.sampled_from([*SWITCH, "lease", "odd"]), value=JSON)
def test_any_value_of_any_key_is_taken_or_refused_with_that_key(whole: dict[str, Any], key: str, value: Any) -> None:
    said = ""
    try:
        found = config.parse(json.dumps(whole | {key: value}), "a.json")
        assert found.agent.workdir.is_absolute()
    except PlanError as error:
        said = str(error)
    assert said or key != "odd"
    # Another name, kind or device may make the rest wrong.
    assert not said or said.startswith(f"a.json: {key}") or key in ("name", "kind", "devices", "tls")
    assert len(said) < 1000


@settings(max_examples=200)
@given(text=st.text())
def test_any_text_is_refused_with_the_file(text: str) -> None:
    with pytest.raises(PlanError, match=r"^a\.json: "):
        config.parse(text, "a.json")
