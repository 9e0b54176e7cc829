# SPDX-License-Identifier: Apache-2.0
"""The kernel as a parameter on a rack: hosts are booted into it for one boot, verified, and booted back at the end.

A host is booted by an entry that GRUB removes as it boots it, with panic=, so that a kernel that panics or hangs is
followed by the default one (boot_once.py).  Kernels is picklable: a run's workers get copies, and what they learn of
kernels that failed lies in a directory that all know.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testctl.core.point import Point
from testctl.system import temporary
from testctl.system.say import say
from testctl_agent.spec.errors import PlanError, TestbedError

from testctl_rack import host_name, power
from testctl_rack.boot_leases import boot_leases, run_of
from testctl_rack.booted import Booted, Seen, seconds_to_boot
from testctl_rack.inventory_file import Machine, Rack
from testctl_rack.menus import SCRIPT, menus
from testctl_rack.on_hosts import on_hosts

PANIC_S = 10
"""From a panic to the reboot."""
MANAGED_S = 600.0
"""What a boot takes besides two times the limit: SSH, and a power cycle."""
_FAILED = "failed.json"


def wanted(point: Point, host: str) -> str:
    """The kernel that a point names for a host; "" for the one that the host has."""
    return str(point.settings.get(host, {}).get("kernel") or "")


def short(release: str) -> str:
    """6.12 of 6.12.117+deb12-amd64."""
    return ".".join(release.split("-")[0].split(".")[:2])


def matching(name: str, releases: Iterable[str]) -> str:
    """The release that a plan's name means; "" when there is none.

    Itself; or else the one that ends in -NAME; or else the first of its major.minor that testctl has not installed
    under a name (host_name.py).  Raises PlanError for a name that several end in.
    """
    releases = list(dict.fromkeys(releases))
    if name in releases:
        return name
    named = [release for release in releases if host_name.means(name, release)]
    if len(named) > 1:
        raise PlanError(f"kernel: want a name that one release ends in; {name} is the end of {', '.join(named)}")
    by_version = (release for release in releases if _is_of(name, release))
    return named[0] if named else next(by_version, "")


def _is_of(version: str, release: str) -> bool:
    return short(release) == version and not host_name.name_of(release)


@dataclass(frozen=True)
class Kernels:
    """What hosts had at the start of a run, and what each could boot.

    machines   the machines that plans' points may boot, by name
    were       machine → the release that it has outside of the run
    installed  machine → releases in GRUB's menu, newest first
    notes      the directory of the notes on kernels that failed
    ticket     of the run (reservation.py)
    """

    rack: Rack
    machines: Mapping[str, Machine]
    were: Mapping[str, str]
    installed: Mapping[str, Sequence[str]]
    notes: Path
    ticket: str = ""

    @classmethod
    def for_run(
        cls, rack: Rack, named: Mapping[str, set[str]], seen: Mapping[str, Seen], ticket: str = ""
    ) -> Kernels | None:
        """named: machine → the kernels that points want of it ("": its own).  None when nothing is to be booted.

        Raises PlanError for a kernel that a host lacks, TestbedError for a host that can't be booted.
        """
        if not any(_boots(kernels, seen[name].was, seen[name].release) for name, kernels in named.items()):
            return None
        machines = {name: rack.machines[name] for name in sorted(named)}
        by_host = menus(rack.path, machines)  # from here on as root lists it: an agent does not decide what root boots
        if not any(_boots(kernels, by_host[name].was, by_host[name].running) for name, kernels in named.items()):
            return None
        were = {name: menu.was or menu.running for name, menu in by_host.items()}
        installed = {name: menu.kernels for name, menu in by_host.items()}
        wrong = [
            f"{rack.path}: {machines[name]}: {why}"
            for name, kernels in sorted(named.items())
            for kernel in sorted(kernels)
            if (why := _unmatched(kernel, were[name], installed[name]))
        ]
        if wrong:
            raise PlanError("\n".join(wrong))
        return cls(rack, machines, were, installed, _notes(), ticket)

    def release(self, machine: str, kernel: str) -> str:
        """What a machine is to run for a kernel that a plan names; "" for what it has outside of the run."""
        return matching(kernel, (self.were[machine], *self.installed[machine])) if kernel else self.were[machine]

    def ensure(self, kernels: Mapping[str, str]) -> None:
        """Boot the machines that do not run what they are to run: machine → the kernel that a point names.

        Raises TestbedError when one does not run it afterwards; it is not tried again in this run.
        """
        releases = {name: self.release(name, kernel) for name, kernel in kernels.items()}
        failed = self._failed()
        if wrong := [failed[name][release] for name, release in releases.items() if release in failed.get(name, {})]:
            raise TestbedError("\n".join(wrong))
        booted = Booted(self.rack, self.ticket)
        seen = booted.all(self.machines[name] for name in releases)
        to_boot = {name: release for name, release in releases.items() if seen[name].release != release}
        if not to_boot:
            return
        self._boot(booted, to_boot, seen)
        booted.await_clocks([self.machines[name] for name in to_boot])

    def _boot(
        self,
        booted: Booted,
        releases: Mapping[str, str],
        seen: Mapping[str, Seen],
        *,
        alone: bool = False,
        by_entry: bool = False,
    ) -> None:
        """Boot machines at the same time, and wait for all.  Raises TestbedError with the errors of all.

        alone: each also where another can't be leased
        by_entry: also those that are to have what they had, because their default entry is another one
        """
        limit_s = seconds_to_boot()
        machines = {name: self.machines[name] for name in releases}
        with boot_leases(self.rack, machines.values(), self.ticket, 2 * limit_s + MANAGED_S) as unleased:
            if unleased and not alone:
                raise TestbedError("\n".join(unleased.values()))
            leased = {name: release for name, release in sorted(releases.items()) if name not in unleased}
            if leased:
                what = "boots back" if all(self.were[name] == release for name, release in leased.items()) else "boots"
                say(f"testctl: {what} {', '.join(f'{name} into {release}' for name, release in leased.items())}")
            wrong = unleased | (self._boot_leased(booted, leased, seen, limit_s, by_entry) if leased else {})
        if wrong:
            raise TestbedError("\n".join(wrong[name] for name in sorted(wrong)))

    def _boot_leased(
        self, booted: Booted, releases: Mapping[str, str], seen: Mapping[str, Seen], limit_s: float, by_entry: bool
    ) -> dict[str, str]:
        """The errors."""
        wrong = {
            name: f"{self.machines[name]}: kernel: its agent says {seen[name].release!r}, the host {menu.running}"
            for name, menu in menus(self.rack.path, {name: self.machines[name] for name in releases}).items()
            if menu.running != seen[name].release
        }
        again: dict[str, Seen] = {}
        by_release: dict[tuple[str, str], list[str]] = {}
        for name in sorted(releases.keys() - wrong.keys()):
            by_release.setdefault((releases[name], self.were[name]), []).append(name)
        for (release, was), names in sorted(by_release.items()):
            plain = release == was and not by_entry
            order = ["reboot"] if plain else ["once", release, was, str(PANIC_S)]
            results = on_hosts(self.rack.path, names, SCRIPT, [*order, run_of(self.ticket)])
            wrong |= {name: f"{self.machines[name]}: {r['error']}" for name, r in results.items() if "error" in r}
        going = {name: self.machines[name] for name in releases.keys() - wrong.keys()}
        now = booted.await_boots(going, {name: seen[name].boot for name in going}, limit_s)
        for name, machine in sorted(going.items()):
            if name not in now:
                wrong[name] = self._brought_back(booted, machine, releases[name], seen[name], limit_s)
            elif now[name].release == releases[name]:
                continue
            elif releases[name] == self.were[name] and not by_entry:
                again[name] = now[name]
            else:
                wrong[name] = (
                    f"{machine}: kernel: want {releases[name]}; got {now[name].release}, which GRUB booted after it; "
                    f"{power.last_lines(machine)}"
                )
        if again:
            try:
                self._boot(booted, {name: releases[name] for name in again}, again, alone=True, by_entry=True)
            except TestbedError as error:
                wrong["again"] = str(error)
        if wrong:
            self._remember(wrong, releases)
        return wrong

    def _brought_back(self, booted: Booted, machine: Machine, release: str, seen: Seen, limit_s: float) -> str:
        """Switch a machine off and on that a kernel has not brought back; returns the error for the points."""
        lost = f"{machine}: kernel: want {release}; got no agent within {limit_s:g} s of the reboot"
        if why := booted.unreached.get(machine.name):
            lost += f" ({why})"
        lost += f"; {power.last_lines(machine)}"
        try:
            power.cycle(machine)
        except TestbedError as error:
            return f"{lost}; {error}"
        now = booted.await_boots({machine.name: machine}, {machine.name: seen.boot}, limit_s)
        if machine.name in now:
            return f"{lost}; after a power cycle it runs {now[machine.name].release}"
        return f"{lost}; a power cycle has not brought it back within {limit_s:g} s"

    def _failed(self) -> dict[str, dict[str, str]]:
        try:
            failed: dict[str, dict[str, str]] = json.loads((self.notes / _FAILED).read_text(encoding="utf-8"))
        except OSError:
            return {}
        return failed

    def _remember(self, wrong: Mapping[str, str], releases: Mapping[str, str]) -> None:
        failed = self._failed()
        for name, reason in wrong.items():
            if name in releases and releases[name] != self.were[name]:
                failed.setdefault(name, {})[releases[name]] = reason
        (self.notes / _FAILED).write_text(json.dumps(failed), encoding="utf-8")

    def end(self) -> None:
        """Every machine on the kernel that it had.  Raises TestbedError with those that are not."""
        try:
            back(self.rack, self.machines, self.were, self.ticket)
        finally:
            _gone(self.notes)


def _boots(kernels: Iterable[str], was: str, running: str) -> bool:
    """Whether a host has to be booted for points, or after them."""
    return bool(was) or any(kernel and not _is_of(kernel, running) for kernel in kernels)


def _unmatched(kernel: str, was: str, installed: Sequence[str]) -> str:
    """Why a plan's name means no kernel of a host; "" if it means one."""
    try:
        matches = not kernel or matching(kernel, (was, *installed))
    except PlanError as error:
        return str(error)
    return "" if matches else f"kernel: want {kernel}; installed are {', '.join(installed)}"


def back(rack: Rack, machines: Mapping[str, Machine], were: Mapping[str, str], ticket: str) -> list[str]:
    """Boot machines into the kernels that they had, and remove the entry; returns what was done, one line each.

    Raises TestbedError after all others were booted, with those that were not, because another run has them by now too.

    ticket: of the run that boots them
    """
    booted = Booted(rack)
    seen, wrong = booted.reached(machines.values())
    others = {name: were[name] for name in machines if name in seen and seen[name].release != were[name]}
    if others:
        kernels = Kernels(rack, machines, were, {}, _notes(), ticket)
        try:
            kernels._boot(booted, others, seen, alone=True)
        except TestbedError as error:
            wrong["boot"] = str(error)
        finally:
            _gone(kernels.notes)
    with boot_leases(rack, [machines[name] for name in seen], ticket) as unleased:
        wrong |= {name: why for name, why in unleased.items() if str(machines[name]) not in wrong.get("boot", "")}
        to_clean = sorted(seen.keys() - unleased.keys())
        cleaned = on_hosts(rack.path, to_clean, SCRIPT, ["clean"]) if to_clean else {}
    for name, result in cleaned.items():
        if "error" in result and name not in wrong:
            wrong[name] = f"{machines[name]}: {result['error']}"
    if wrong:
        raise TestbedError("\n".join(wrong.values()))
    return [f"{machines[name]}: booted back into {release}" for name, release in sorted(others.items())]


def in_order(points: Sequence[Point], first: str) -> list[Point]:
    """Points such that hosts are booted as rarely as possible: kernel by kernel, first those on which the hosts are.

    first: the name of a kernel; "" is what hosts have.  Within a kernel the order stays.
    """
    names = list(dict.fromkeys(kernel_of(point) for point in points))
    names.sort(key=lambda name: name not in ("", first))
    return sorted(points, key=lambda point: names.index(kernel_of(point)))


def kernel_of(point: Point) -> str:
    """The kernel that a point names; the plan's loader made sure that all hosts agree."""
    return next((name for host in point.topology.hosts if (name := wanted(point, host))), "")


def _notes() -> Path:
    """A new directory that the next start removes if this process does not."""
    made = Path(tempfile.mkdtemp(prefix="testctl-kernels-"))
    temporary.hold(made)
    return made


def _gone(notes: Path) -> None:
    shutil.rmtree(notes, ignore_errors=True)
    temporary.release(notes)
