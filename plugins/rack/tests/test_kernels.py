# SPDX-License-Identifier: Apache-2.0
"""Which kernel a plan's name means on a host, in which order points boot hosts, and what happens to those that fail."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testctl.core.point import Point
from testctl.plan import load_plan
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_rack import kernels as module
from testctl_rack import menus, power
from testctl_rack.boot_leases import run_of
from testctl_rack.booted import Seen
from testctl_rack.inventory_file import Machine, Rack
from testctl_rack.kernels import Kernels, in_order, kernel_of, matching

NEW, OLD = "6.12.117+deb12-amd64", "6.1.0-56-amd64"
PLAN = """
about: kernels
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, kernel, ["6.1", "6.12"]]
  - [bulk, cc, [cubic, reno]]
"""


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that a test does not give back leave their notes there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def points(tmp_path: Path) -> tuple[Point, ...]:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN, encoding="utf-8")
    return load_plan(path, testbed="inventory").points


@pytest.mark.parametrize(
    ("name", "release"), [("6.12", NEW), ("6.1", OLD), (OLD, OLD), ("6", ""), ("6.13", ""), ("6.12.117", "")]
)
def test_a_name_is_a_release_or_its_first_two_numbers(name: str, release: str) -> None:
    assert matching(name, [NEW, "6.12.90-mine", OLD]) == release


MINE = "6.12.117-testctl-mine"


@pytest.mark.parametrize(
    ("name", "release"), [("mine", MINE), (MINE, MINE), ("6.12", NEW), ("6.13", ""), ("min", ""), ("testctl-mine", "")]
)
def test_a_name_of_one_s_own(name: str, release: str) -> None:
    """A version is never a kernel that has a name, newer or not."""
    assert matching(name, [MINE, "6.13.0-testctl-other", NEW, OLD]) == release


def test_a_name_that_several_releases_end_in(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanError, match=r"host alpha .*: kernel: want a name .*; amd64 is the end of"):
        kernels(monkeypatch, Hosts({"alpha": NEW}), "amd64")


@pytest.mark.parametrize(
    ("first", "order"), [("6.12", ["6.12", "6.1"]), ("6.1", ["6.1", "6.12"]), ("", ["6.1", "6.12"])]
)
def test_hosts_boot_once_for_each_kernel(points: tuple[Point, ...], first: str, order: list[str]) -> None:
    mixed = [points[0], points[2], points[1], points[3]]
    found = [kernel_of(point) for point in in_order(mixed, first)]
    assert found == [order[0], order[0], order[1], order[1]]
    assert [p.id for p in in_order(mixed, "6.1") if kernel_of(p) == "6.1"] == [points[0].id, points[1].id]


class Hosts:
    """Hosts with kernels, of which some do not come up, in place of Ansible and agents."""

    def __init__(self, releases: Mapping[str, str], bad: Iterable[str] = (), dead: Iterable[str] = ()) -> None:
        self.releases = dict(releases)
        self.default = dict(releases)
        self.bad, self.dead = set(bad), set(dead)
        self.off: set[str] = set()
        self.boots = dict.fromkeys(releases, 0)
        self.calls: list[tuple[str, ...]] = []
        self.held: set[str] = set()
        self.was: dict[str, str] = {}
        self.words: list[list[str]] = []

    def on_hosts(self, inventory: Path, hosts: Iterable[str], script: Path, words: list[str]) -> dict[str, Any]:
        self.calls.append((words[0], *hosts))
        self.words.append(words)
        for host in hosts if words[0] == "reboot" else ():
            self.boots[host] += 1
            self.releases[host] = self.default[host]
        for host in hosts if words[0] == "once" else ():
            self.boots[host] += 1
            if words[1] in self.dead:
                self.off.add(host)
            else:
                self.releases[host] = self.default[host] if words[1] in self.bad else words[1]
        return {
            host: {
                "kernels": [NEW, OLD],
                "running": self.releases[host],
                "default": self.default[host],
                "was": self.was.get(host, ""),
            }
            for host in hosts
        }

    def reached(self, machines: Iterable[Machine]) -> tuple[dict[str, Seen], dict[str, str]]:
        there = [m.name for m in machines]
        seen = {name: Seen(self.releases[name], str(self.boots[name])) for name in there if name not in self.off}
        return seen, {name: f"host {name}: not reachable" for name in there if name in self.off}

    def all(self, machines: Iterable[Machine]) -> dict[str, Seen]:
        return self.reached(machines)[0]

    def await_boots(
        self, machines: Mapping[str, Machine], before: Mapping[str, str], limit_s: float
    ) -> dict[str, Seen]:
        seen, self.unreached = self.reached(machines.values())
        return {name: one for name, one in seen.items() if name in machines and one.boot != before[name]}

    def await_clocks(self, machines: Iterable[Machine]) -> None:
        pass

    @contextmanager
    def leases(
        self, rack: Rack, machines: Iterable[Machine], ticket: str, limit_s: float = 0.0
    ) -> Iterator[dict[str, str]]:
        yield {m.name: f"{m}: leased to bob" for m in machines if m.name in self.held}

    def power(self, machine: Machine) -> None:
        self.off.discard(machine.name)
        self.boots[machine.name] += 1


def kernels(monkeypatch: pytest.MonkeyPatch, hosts: Hosts, *wanted: str) -> Kernels:
    machines = {name: Machine(name, "host", f"192.0.2.1:{7400 + n}") for n, name in enumerate(hosts.releases)}
    monkeypatch.setattr(module, "on_hosts", hosts.on_hosts)
    monkeypatch.setattr(menus, "on_hosts", hosts.on_hosts)
    monkeypatch.setattr(module, "Booted", lambda rack, ticket="": hosts)
    monkeypatch.setattr(module, "boot_leases", hosts.leases)
    monkeypatch.setattr(module.power, "cycle", hosts.power)
    monkeypatch.setattr(module.power, "last_lines", lambda machine: "its console: Kernel panic")
    seen = hosts.all(machines.values())
    rack = Rack(Path("inventory/mine"), machines, Path())
    found = Kernels.for_run(rack, {name: set(wanted) for name in machines}, seen)
    assert found is not None
    return found


def test_hosts_are_booted_together_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts({"alpha": NEW, "beta": NEW})
    found = kernels(monkeypatch, hosts, "6.1", "6.12")
    found.ensure({"alpha": "6.12", "beta": "6.12"})
    assert hosts.boots == {"alpha": 0, "beta": 0}
    found.ensure({"alpha": "6.1", "beta": "6.1"})
    found.ensure({"alpha": "6.1", "beta": "6.1"})
    assert hosts.releases == {"alpha": OLD, "beta": OLD}
    assert hosts.boots == {"alpha": 1, "beta": 1}
    found.end()
    assert hosts.releases == {"alpha": NEW, "beta": NEW}
    assert hosts.calls[-1] == ("clean", "alpha", "beta")
    assert not found.notes.exists()


def test_a_host_whose_default_is_another_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was booted into its kernel by hand, and is again."""
    hosts = Hosts({"alpha": NEW})
    hosts.default["alpha"] = "6.5.0"
    found = kernels(monkeypatch, hosts, "6.1")
    found.ensure({"alpha": "6.1"})
    found.end()
    assert hosts.releases == {"alpha": NEW}
    assert [call[0] for call in hosts.calls] == ["list", "list", "once", "list", "reboot", "list", "once", "clean"]


def test_a_point_without_a_kernel_has_that_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts({"alpha": NEW})
    found = kernels(monkeypatch, hosts, "6.1", "")
    found.ensure({"alpha": "6.1"})
    found.ensure({"alpha": ""})
    assert hosts.releases == {"alpha": NEW}


def test_a_kernel_that_panics_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the console; other hosts' boots are not repeated; the host is on its own kernel."""
    hosts = Hosts({"alpha": NEW, "beta": NEW}, bad=[OLD])
    found = kernels(monkeypatch, hosts, "6.1")
    for _ in range(2):
        with pytest.raises(TestbedError, match=r"alpha .*want 6\.1\.0.*got 6\.12\.117.*Kernel panic"):
            found.ensure({"alpha": "6.1", "beta": "6.1"})
    assert hosts.boots == {"alpha": 1, "beta": 1}
    found.end()


def test_a_kernel_that_never_comes_up_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts({"alpha": NEW}, dead=[OLD])
    found = kernels(monkeypatch, hosts, "6.1")
    with pytest.raises(
        TestbedError,
        match=r"got no agent within .*alpha: not reachable.*Kernel panic.*after a power cycle it runs 6\.12",
    ):
        found.ensure({"alpha": "6.1"})
    assert hosts.releases == {"alpha": NEW}
    found.end()


def test_a_kernel_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanError, match=r"host alpha .*: kernel: want 6\.13; installed are 6\.12.*, 6\.1"):
        kernels(monkeypatch, Hosts({"alpha": NEW}), "6.13")


EVIL = "6.1.0 init=/var/lib/testctl/agent/x\n}\nmenuentry 'x' {{ lookup('pipe', 'id') }}"


@pytest.mark.parametrize("was", [NEW, EVIL])
def test_what_a_killed_run_left_is_the_kernel_to_have_again(monkeypatch: pytest.MonkeyPatch, was: str) -> None:
    """As root of the host says it, whatever its agent does."""
    hosts = Hosts({"alpha": OLD})
    hosts.was["alpha"] = NEW
    monkeypatch.setattr(hosts, "reached", lambda machines: ({"alpha": Seen(OLD, str(hosts.boots["alpha"]), was)}, {}))
    found = kernels(monkeypatch, hosts, "6.1")
    assert found.were == {"alpha": NEW}


@pytest.mark.parametrize("seen", [Seen(EVIL, "1"), Seen(NEW, "1", EVIL), Seen(OLD, "1", EVIL)])
def test_an_agent_does_not_say_what_root_boots(monkeypatch: pytest.MonkeyPatch, seen: Seen) -> None:
    hosts = Hosts({"alpha": NEW})
    true = hosts.reached
    monkeypatch.setattr(hosts, "reached", lambda machines: ({"alpha": seen}, {}))
    found = kernels(monkeypatch, hosts, "6.1", "6.12")
    if seen.release == NEW:
        monkeypatch.setattr(hosts, "reached", true)
        found.ensure({"alpha": "6.1"})
    else:
        with pytest.raises(TestbedError, match=r"host alpha .*: kernel: its agent says .6\.1.*, the host 6\.12"):
            found.ensure({"alpha": "6.12"})
        assert hosts.boots == {"alpha": 0}
    assert {word for words in hosts.words for word in words} <= {"list", "once", OLD, NEW, "10", run_of("")}


def test_nothing_is_booted_on_an_agent_s_word_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts({"alpha": NEW})
    monkeypatch.setattr(menus, "on_hosts", hosts.on_hosts)
    rack = Rack(Path("inventory/mine"), {"alpha": Machine("alpha", "host", "192.0.2.1:7400")}, Path())
    assert Kernels.for_run(rack, {"alpha": {""}}, {"alpha": Seen(NEW, "1", "6.1")}) is None
    assert hosts.calls == [("list", "alpha")]


def test_a_kernel_of_one_s_own_that_runs_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts({"alpha": MINE})
    monkeypatch.setattr(
        hosts, "on_hosts", lambda *_: {"alpha": {"kernels": [MINE, NEW], "running": MINE, "was": "", "default": NEW}}
    )
    found = kernels(monkeypatch, hosts, "mine", "6.12")
    assert (found.release("alpha", "mine"), found.release("alpha", "6.12")) == (MINE, NEW)
    found.ensure({"alpha": "mine"})
    assert hosts.boots == {"alpha": 0}


def test_a_machine_of_another_run_is_not_booted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is, for a point, the one beside it; at the end the others are booted back."""
    hosts = Hosts({"alpha": NEW, "beta": NEW})
    found = kernels(monkeypatch, hosts, "6.1")
    hosts.held = {"beta"}
    with pytest.raises(TestbedError, match=r"^host beta .*: leased to bob$"):
        found.ensure({"alpha": "6.1", "beta": "6.1"})
    assert hosts.boots == {"alpha": 0, "beta": 0}
    hosts.held = set()
    found.ensure({"alpha": "6.1", "beta": "6.1"})
    hosts.held = {"beta"}
    with pytest.raises(TestbedError, match=r"^host beta .*: leased to bob$"):
        found.end()
    assert hosts.releases == {"alpha": NEW, "beta": OLD}
    assert hosts.calls[-1] == ("clean", "alpha")


def test_a_machine_without_a_lease_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose agent does not answer may be another run's, which boots it just now."""
    hosts = Hosts({"alpha": NEW, "beta": NEW})
    found = kernels(monkeypatch, hosts, "6.1")
    hosts.off = {"beta"}
    with pytest.raises(TestbedError, match=r"^host beta: not reachable$"):
        found.end()
    assert hosts.calls[-1] == ("clean", "alpha")


def test_nothing_to_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    rack = Rack(Path("inventory/mine"), {"alpha": Machine("alpha", "host", "192.0.2.1:7400")}, Path())
    assert Kernels.for_run(rack, {"alpha": {"", "6.12"}}, {"alpha": Seen(NEW, "1")}) is None


def test_the_last_lines_of_a_console(tmp_path: Path) -> None:
    """A panic that scrolled away comes first; what moves a cursor is left out."""
    console = tmp_path / "console"
    trace = [f"[    1.{number:06d}]  frame_{number}" for number in range(30)]
    console.write_text("\n".join(["[    0.9] Kernel panic - not syncing", *trace, "\x1b[H\x1b[JBooting"]), "utf-8")
    said = power.last_lines(Machine("alpha", "host", "192.0.2.1:7400", commands={"console": ("cat", str(console))}))
    assert said.startswith("the last lines of its console: [    0.9] Kernel panic - not syncing | [    1.000019]")
    assert said.endswith("frame_29 | Booting")
