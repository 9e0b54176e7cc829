# SPDX-License-Identifier: Apache-2.0
"""Inventories, and where a plan's entities go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testctl.core.topology import Topology
from testctl.plan import load_plan, load_topology
from testctl.testbeds.choose import find
from testctl.testbeds.point_spec import code_with_others, spec_of
from testctl.testbeds.testbed import Request
from testctl_agent.spec.errors import PlanError
from testctl_agent.system import entry_points
from testctl_agent.system.identity import version
from testctl_rack.inventory_file import Machine, Rack, rack_of, read_rack
from testctl_rack.placement import place
from testctl_rack.rack import InventoryTestbed, _key, lacking_generators

from agents.tests.system.made_up import BACKENDS, GENERATORS, on_path, write

ROOT = Path(__file__).parents[3]

VARS: dict[str, dict[str, Any]] = {
    "alpha": {
        "testctl_listen": "192.0.2.11:7411",
        "testctl_device": "ens1",
        "testctl_address": "10.20.0.11",
        "testctl_mac": "02:00:00:00:00:0B",
    },
    "beta": {
        "testctl_listen": "192.0.2.12:7411",
        "testctl_device": "ens2",
        "testctl_address": "10.20.0.12",
        "testctl_mac": "02:00:00:00:00:0c",
    },
    "s1": {"testctl_listen": "192.0.2.21:7411", "testctl_ports": {"alpha": "p1", "beta": "p2"}},
}


def listed(**changes: dict[str, Any]) -> dict[str, Any]:
    """What `ansible-inventory --list` prints of a rack of two hosts and a switch."""
    found = {name: {"testctl_keys": "keys", **values} for name, values in deepcopy(VARS).items()}
    for name, values in changes.items():
        found.setdefault(name, {}).update(values)
    return {
        "_meta": {"hostvars": found},
        "testctl_hosts": {"hosts": [name for name in found if name != "s1"]},
        "testctl_switches": {"hosts": ["s1"]},
    }


def rack(**changes: dict[str, Any]) -> Rack:
    return rack_of(listed(**changes), Path("inventory/mine"))


def test_a_rack() -> None:
    found = rack()
    assert found.machines["alpha"].mac == "02:00:00:00:00:0b"
    assert found.linked("alpha", "s1")
    assert not found.linked("alpha", "beta")


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("alpha", {"testctl_listen": "192.0.2.11"}, "want ADDRESS:PORT, the address of IPv4; got '192.0.2.11'"),
        ("alpha", {"testctl_listen": "192.0.2.11:99999"}, "alpha: testctl_listen: want ADDRESS:PORT"),
        ("alpha", {"testctl_listen": "2001:db8::1:7400"}, "alpha: testctl_listen: want ADDRESS:PORT"),
        ("alpha", {"testctl_listen": "[2001:db8::1]:7400"}, "alpha: testctl_listen: want ADDRESS:PORT"),
        ("alpha", {"testctl_listen": "host name:7400"}, "alpha: testctl_listen: want ADDRESS:PORT"),
        ("alpha", {"testctl_device": 7}, "alpha: testctl_device: want a text; got 7"),
        (
            "alpha",
            {"testctl_device": "", "testctl_devise": "eth1"},
            "alpha: testctl_devise: want a variable of testctl's; did you mean testctl_device?",
        ),
        ("s1", {"testctl_port": {}}, "s1: testctl_port: want a variable of testctl's; did you mean testctl_ports?"),
        ("s1", {"testctl_zzz": 1}, "s1: testctl_zzz: want a variable of testctl's; there are testctl_address, "),
        ("beta", {"testctl_address": "fe80::1"}, "beta: testctl_address: want an IPv4 address; got 'fe80::1'"),
        ("beta", {"testctl_address6": "10.1"}, "beta: testctl_address6: want an IPv6 address; got '10.1'"),
        ("beta", {"testctl_address6": "fd00::/64"}, "beta: testctl_address6: want an IPv6 address; got 'fd00::/64'"),
        ("beta", {"testctl_mac": "02:00"}, "beta: testctl_mac: want six bytes"),
        ("beta", {"testctl_address": "10.20.0.11"}, "testctl_address 10.20.0.11: alpha and beta have it"),
        ("beta", {"testctl_keys": "other"}, "testctl_keys: want one directory for all; got keys, other"),
        ("s1", {"testctl_ports": {"gamma": "p3"}}, "want hosts, of alpha, beta, at the other end; got gamma"),
        ("s1", {"testctl_ports": {"s1": "p3"}}, "got s1, a switch: for plans with joined switches take"),
        ("s1", {"testctl_ports": {"alpha": "p1", "beta": "p1"}}, "want a device for each; got p1, p1"),
        ("s1", {"testctl_ports": ["p1"]}, "s1: testctl_ports: want {who is at the other end: device}"),
        ("s1", {"testctl_backend": "tofu"}, "s1: testctl_backend: want one of bmv2, ebpf, netem"),
        ("alpha", {"testctl_generators": ["netperf"]}, "alpha: testctl_generators: want one of iperf3, tgen"),
        ("alpha", {"testctl_generators": "trex"}, "alpha: testctl_generators: want a list of generators; got 'trex'"),
    ],
)
def test_what_is_wrong_is_named(name: str, values: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError) as refused:
        rack(**{name: values})
    assert words in str(refused.value)
    assert str(refused.value).startswith("inventory/mine: ")


def test_what_is_left_empty_is_not_given() -> None:
    found = rack(**{name: {"testctl_keys": None, "testctl_entity": None} for name in VARS})
    assert found.keys == Path("inventory/../inventory.keys")
    assert {machine.entity for machine in found.machines.values()} == {""}


def test_what_no_installed_distribution_brings_is_named_with_the_one_that_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entry_points, "_entry_points", lambda group: {})
    with pytest.raises(PlanError) as refused:
        rack(s1={"testctl_backend": "tofino"}, alpha={"testctl_generators": ["tgen", "trex"]})
    where = "which comes with the distribution testctl-hardware: it is not installed"
    assert str(refused.value).splitlines() == [
        f"inventory/mine: alpha: testctl_generators: want one of iperf3, tgen; got 'trex', {where}",
        f"inventory/mine: s1: testctl_backend: want one of ebpf, netem; got 'tofino', {where}",
    ]


SIX = b"topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[bulk, family, [4, 6]]]\n"


def test_a_flow_over_ipv6_has_the_racks_addresses() -> None:
    found = rack(alpha={"testctl_address6": "FD20:0::11"}, beta={"testctl_address6": "fd20::12"})
    four, six = load_plan(SIX).points
    placement = place(six.topology, found)
    assert placement.lacks_ipv6(six) == ""
    assert placement.placed(six).topology.hosts6 == {"sender": "fd20::11", "receiver": "fd20::12"}
    assert placement.placed(four).topology.hosts6 == {}
    assert spec_of(placement.placed(six)).state["switch"]["flows"] == "bulk/0 tcp [fd20::11]:40000 [fd20::12]:5001"


def test_a_host_without_an_ipv6_address_is_named(tmp_path: Path) -> None:
    found = rack(alpha={"testctl_address6": "fd20::11"})
    four, six = load_plan(SIX).points
    placement = place(six.topology, found)
    assert placement.lacks_ipv6(four) == ""
    want = "host beta (192.0.2.12:7411), testctl_address6: want its IPv6 address, for flow bulk with family 6; got none"
    assert placement.lacks_ipv6(six) == want
    bed = InventoryTestbed(found, {_key(six): placement}, "")
    asked, outcome = bed.run(six, tmp_path)
    assert asked.topology.hosts == six.topology.hosts
    assert outcome.skip == f"{want} in inventory/mine"


@pytest.fixture
def made_up(tmp_path: Path) -> Iterator[Rack]:
    """A rack whose host alpha has a generator, and whose switch a back end, of a made-up distribution."""
    words = {GENERATORS: {"posts": "made_up_testctl.posts"}, BACKENDS: {"loom": "made_up_testctl.loom"}}
    modules = ("made_up_testctl.__init__", "made_up_testctl.posts", "made_up_testctl.loom")
    with on_path(write(tmp_path, "testctl-made-up", words, dict.fromkeys(modules, ""))):
        yield rack(s1={"testctl_backend": "loom"}, alpha={"testctl_generators": ["posts"]})


def test_the_version_that_an_agent_must_have_covers_what_its_inventory_names(made_up: Rack) -> None:
    machines = made_up.machines
    assert machines["s1"].packages() == machines["alpha"].packages() == ("made_up_testctl",)
    assert machines["beta"].packages() == ()
    assert version(machines["alpha"].packages()) != version()


@pytest.mark.usefixtures("made_up")
def test_the_code_key_of_a_point_covers_what_it_names() -> None:
    plan = load_plan("topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[bulk, generator, [tgen, posts]]]\n")
    tgen, posts = (code_with_others("0123", point) for point in plan.points)
    assert tgen == "0123"
    assert re.fullmatch("[0-9a-f]{16}", posts)


def test_a_plan_may_use_the_generators_that_both_hosts_of_a_flow_have(made_up: Rack) -> None:
    plan = load_plan("topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[bulk, generator, [tgen, posts]]]\n")
    tgen, posts = plan.points
    placement = place(tgen.topology, made_up)
    assert lacking_generators(tgen, placement) == []
    want = "testctl_generators: want posts among them, for flow bulk; got none"
    assert lacking_generators(posts, placement) == [f"host beta (192.0.2.12:7411): {want}"]


def test_all_problems_come_at_once() -> None:
    with pytest.raises(PlanError) as refused:
        rack(alpha={"testctl_listen": "x"}, beta={"testctl_mac": "y"})
    assert len(str(refused.value).splitlines()) == 2


def test_an_inventory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no such file or directory"):
        read_rack(tmp_path / "nothing")


def test_an_inventory_is_read_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the sandbox of the nightly unit: Ansible's own files go to the cache, not to the checkout."""
    (tmp_path / "ansible.cfg").write_text("[defaults]\nhome = /proc/nowhere\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    assert set(read_rack(ROOT / "inventory" / "rack-example").machines) == {"alpha", "beta", "s1"}
    assert (tmp_path / "cache" / "ansible").is_dir()


def test_entities_go_where_the_cables_are() -> None:
    found = place(load_topology("pair"), rack())
    assert found.to_json() == {"sender": "alpha", "receiver": "beta", "switch": "s1"}
    assert found.out("switch:receiver") == "s1:beta"
    assert found.back("switch", "s1:beta") == "switch:receiver"
    assert found.device("sender", "eth0") == "ens1"
    assert found.device("switch", "receiver") == "p2"
    assert found.devices_back("switch") == {"p1": "sender", "p2": "receiver"}


def test_the_inventory_may_say_who_is_who() -> None:
    found = place(load_topology("pair"), rack(beta={"testctl_entity": "sender"}))
    assert found.to_json() == {"sender": "beta", "receiver": "alpha", "switch": "s1"}


def test_no_cable_no_place() -> None:
    with pytest.raises(PlanError, match="the plan's topology does not fit: it needs 2 host"):
        place(load_topology("pair"), rack(s1={"testctl_ports": {"alpha": "p1"}}))


def test_too_many_hosts() -> None:
    with pytest.raises(PlanError, match=r"it needs 3 host\(s\) and 1 switch\(es\).*the rack has 2 host"):
        place(load_topology("star"), rack())


def wide(hosts: dict[str, str]) -> Rack:
    """Two switches that are joined, and hosts at one of them each."""
    ports: dict[str, dict[str, str]] = {"s1": {"s2": "up"}, "s2": {}}
    for host, switch in hosts.items():
        ports[switch][host] = f"to-{host}"
    machines = {name: Machine(name, "switch", f"192.0.2.1:{name[1:]}", ports=those) for name, those in ports.items()}
    machines |= {name: Machine(name, "host", f"192.0.2.2:{name[1:]}", "eth1") for name in hosts}
    return Rack(Path("inventory/wide"), machines, Path("keys"))


def topology(**hosts: str) -> Topology:
    """Hosts at a or b, which are joined."""
    links = (("a", "b"), *hosts.items())
    return Topology(hosts=dict.fromkeys(hosts, "10.0.0.1"), switches=("a", "b"), links=links)


def test_a_large_plan_without_room_is_refused_at_once() -> None:
    """Trying one order of the hosts after the other would take longer than anybody waits."""
    there = wide({f"h{number}": "s1" if number <= 11 else "s2" for number in range(1, 25)})
    wanted = topology(**{f"e{number}": "a" if number <= 12 else "b" for number in range(1, 25)})
    place(topology(**{f"e{number}": "a" if number <= 13 else "b" for number in range(1, 25)}), there)
    with pytest.raises(PlanError, match="the plan's topology does not fit: it needs 24 host"):
        place(wanted, there)


def test_a_host_makes_room_for_one_that_fits_nowhere_else() -> None:
    machines = wide({"h1": "s1", "h2": "s1"}).machines
    named = {**machines, "h1": replace(machines["h1"], entity="y")}
    found = place(topology(x="a", y="a"), Rack(Path("inventory/wide"), named, Path("keys")))
    assert found.to_json() == {"x": "h2", "y": "h1", "a": "s1", "b": "s2"}


def test_commands_of_a_machines_power_and_console() -> None:
    found = rack(alpha={"testctl_power_cycle": "ipmi --host 'a b' cycle", "testctl_console": "tail log"})
    assert found.machines["alpha"].commands == {
        "power_cycle": ("ipmi", "--host", "a b", "cycle"), "console": ("tail", "log"),
    }  # fmt: skip
    assert found.machines["beta"].commands == {}


def test_each_inventory_has_keys_of_its_own(tmp_path: Path) -> None:
    """Also two copies of the same example."""
    same = listed()
    for values in same["_meta"]["hostvars"].values():
        del values["testctl_keys"]
    for name in ("mine", "yours"):
        (tmp_path / name).mkdir()
        assert rack_of(same, tmp_path / name).keys.resolve() == tmp_path / f"{name}.keys"
        (tmp_path / name / "hosts.yaml").touch()
        assert rack_of(same, tmp_path / name / "hosts.yaml").keys.resolve() == tmp_path / f"{name}.keys"
    same["_meta"]["hostvars"]["s1"]["testctl_keys"] = "keys"
    with pytest.raises(PlanError, match=r"testctl_keys: want one directory for all; got ../mine.keys, keys"):
        rack_of(same, tmp_path / "mine")


@pytest.mark.parametrize("command", ["no 'end", "", " ", 7, ["ipmi"]])
def test_what_is_no_command(command: object) -> None:
    if command == "":
        assert rack(alpha={"testctl_power_on": command}).machines["alpha"].commands == {}
        return
    with pytest.raises(PlanError, match="alpha: testctl_power_on: want the words of a command; got"):
        rack(alpha={"testctl_power_on": command})


def test_a_host_out_of_service_is_not_used() -> None:
    others = {"testctl_listen": "192.0.2.13:7411", "testctl_address": "10.20.0.13", "testctl_mac": "02:00:00:00:00:0d"}
    spare = VARS["beta"] | others | {"testctl_keys": "keys"}
    ports = {"testctl_ports": {"alpha": "p1", "beta": "p2", "gamma": "p3"}}
    found = rack(gamma=spare, s1=ports, alpha={"testctl_out_of_service": "its fan"})
    assert sorted(place(load_topology("pair"), found).to_json().values()) == ["beta", "gamma", "s1"]


def test_a_plan_that_needs_a_host_out_of_service() -> None:
    found = rack(beta={"testctl_out_of_service": "its NIC is at Ann's"})
    with pytest.raises(PlanError, match=r"does not fit: .*; host beta \(.*\) is out of service: its NIC is at Ann's"):
        place(load_topology("pair"), found)


def test_a_rack_runs_one_point_at_once(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="a rack runs one point at once; want --jobs 1, got 2"):
        find(str(tmp_path)).ready([], Request(jobs=2))
