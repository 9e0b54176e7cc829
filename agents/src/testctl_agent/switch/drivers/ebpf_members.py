# SPDX-License-Identifier: Apache-2.0
"""The members of an action profile and the groups of a selector, in the maps and in this process.

Callers number members and groups as they like; the maps number them by their places.  A packet takes
member h % n of a group's n members, in the order of their numbers as in BMv2, where h is the selector's hash.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from testctl_agent.bpf.libbpf import Object
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.rows import data_words, keyless, packed
from testctl_agent.switch.layout import GROUP, MAX_CHOICES, Action, Profile


class Members:
    """One action profile."""

    def __init__(self, profile: Profile, loaded: Object) -> None:
        self.profile = profile
        self._where = f"action profile {profile.name}"
        self._loaded = loaded
        self._places: dict[int, int] = {}
        self._groups: dict[int, tuple[int, tuple[int, ...]]] = {}

    def _free(self, taken: Sequence[int]) -> int:
        for place in range(self.profile.size):
            if place not in taken:
                return place
        raise DriverError(f"{self._where}: full: {self.profile.size}")

    def _place(self, number: int) -> int:
        if number not in self._places:
            raise DriverError(f"{self._where}: no member {number}")
        return self._places[number]

    def reference(self, member: int | None, group: int | None) -> int:
        """The data of a row that refers to this member or group."""
        if member is not None:
            return self._place(member)
        if group not in self._groups:
            raise DriverError(f"{self._where}: no group {group}")
        return GROUP | self._groups[group][0]

    def set(self, number: int, action: Action, params: Mapping[str, int]) -> None:
        row = keyless(action.number, data_words(f"{self._where}: member {number}", action, params))
        place = self._places.get(number)
        if place is None:
            place = self._free(list(self._places.values()))
        self._loaded.map(f"a{self.profile.index}").update(struct.pack("=I", place), packed(self.profile, row))
        self._places[number] = place

    def remove(self, number: int, refers: Sequence[Callable[[int], bool]]) -> None:
        place = self._place(number)
        users = [f"group {group}" for group, (_, numbers) in self._groups.items() if number in numbers]
        users += ["a row"] if any(is_used(place) for is_used in refers) else []
        if users:
            raise DriverError(f"{self._where}: member {number}: {users[0]} refers to it")
        del self._places[number]

    def set_group(self, number: int, numbers: Sequence[int]) -> None:
        if not self.profile.selector:
            raise DriverError(f"{self._where}: it has no groups: it is no selector")
        if len(numbers) > MAX_CHOICES:
            raise DriverError(f"{self._where}: group {number}: want at most {MAX_CHOICES} members; got {len(numbers)}")
        places = [self._place(member) for member in sorted(numbers)]
        if number in self._groups:
            at = self._groups[number][0]
        else:
            at = self._free([place for place, _ in self._groups.values()])
        self._write(at, places)
        self._groups[number] = at, tuple(numbers)

    def remove_group(self, number: int, refers: Sequence[Callable[[int], bool]]) -> None:
        if number not in self._groups:
            raise DriverError(f"{self._where}: no group {number}")
        at, _ = self._groups[number]
        if any(is_used(GROUP | at) for is_used in refers):
            raise DriverError(f"{self._where}: group {number}: a row refers to it")
        self._write(at, [])
        del self._groups[number]

    def _write(self, at: int, places: Sequence[int]) -> None:
        groups = self._loaded.map(f"s{self.profile.index}")
        raw = struct.pack(f"=I{MAX_CHOICES}I", len(places), *places, *[0] * (MAX_CHOICES - len(places)))
        groups.update(struct.pack("=I", at), raw)
