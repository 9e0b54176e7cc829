# SPDX-License-Identifier: Apache-2.0
"""How late a host of the lab answers an interrupt: a seeded model of what real hosts have by themselves.

The lab's kernel has the model (lab/kernel/lab_interrupts.c) and one file for a host's settings, which are read and
written together here.  Each host has a stream of random numbers of its own, which its name and the seed begin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testctl_agent.params.devices import gather, spread, unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount, Choice, Int, Value
from testctl_agent.spec.units import Duration

FILE = "module/testctl_interrupts/parameters/jitter"
_LONGEST_NS = 10**9
_MOST_EVERY = 1 << 30

SPECS = [
    ParamSpec(
        name="jitter",
        kind="host",
        help="Mean time from a NIC's or a timer's interrupt to when the host answers it; 0ns: at once",
        type=Amount(Duration, most=_LONGEST_NS),
    ),
    ParamSpec(
        name="jitter_distribution",
        kind="host",
        help="Distribution of jitter; uniform: from 0 to twice the mean",
        type=Choice(("constant", "exponential", "uniform")),
    ),
    ParamSpec(
        name="jitter_seed",
        kind="host",
        help="Another seed, other times of the same distribution",
        type=Int(0, 2**32 - 1),
    ),
    ParamSpec(
        name="jitter_tail",
        kind="host",
        help="Mean of the further, exponential time that one interrupt in jitter_tail_every takes; 0ns: none does",
        type=Amount(Duration, most=_LONGEST_NS),
    ),
    ParamSpec(
        name="jitter_tail_every",
        kind="host",
        help="How many interrupts there are, on average, for each that takes jitter_tail",
        type=Int(1, _MOST_EVERY, "interrupts"),
    ),
]


@dataclass(frozen=True)
class _Jitter:
    """A device's settings, in the order of the file's fields."""

    distribution: str = "exponential"
    mean_ns: int = 0
    tail_ns: int = 0
    tail_every: int = 1000
    seed: int = 1


_FIELDS = {
    "jitter": "mean_ns",
    "jitter_distribution": "distribution",
    "jitter_seed": "seed",
    "jitter_tail": "tail_ns",
    "jitter_tail_every": "tail_every",
}


def _file(entity: Entity) -> Path:
    return entity.sys / FILE


def _read(entity: Entity, device: str) -> _Jitter:
    for line in _file(entity).read_text(encoding="ascii").splitlines():
        name, distribution, *numbers = line.split()
        if name == device:
            return _Jitter(distribution, *(int(number) for number in numbers[:4]))
    return _Jitter()


def _stream(entity: Entity, device: str) -> int:
    """A number of the host's name and device, the same on every machine."""
    import hashlib  # which loads OpenSSL, and few points need it

    digest = hashlib.blake2b(f"{entity.name} {device}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def read(entity: Entity, name: str) -> Value:
    def read_device(device: str) -> Value:
        value: Value = getattr(_read(entity, device), _FIELDS[name])
        return value

    return gather(entity, read_device)


def apply(entity: Entity, name: str, value: Value) -> None:
    def apply_device(device: str, wanted: Value) -> None:
        changed: dict[str, Any] = {_FIELDS[name]: wanted if name == "jitter_distribution" else int(wanted)}
        new = replace(_read(entity, device), **changed)
        fields = (device, new.distribution, new.mean_ns, new.tail_ns, new.tail_every, new.seed, _stream(entity, device))
        _file(entity).write_text(" ".join(map(str, fields)), encoding="ascii")

    spread(entity, name, value, apply_device)


def unavailable(entity: Entity, name: str) -> str:
    def reason(device: str) -> str:
        if not _file(entity).exists():
            return "only a lab's kernel models it; other hosts have what they have"
        try:
            _read(entity, device)
        except ValueError as error:
            raise TestbedError(f"{_file(entity)}: {error}") from error
        return ""

    return unavailable_on(entity, reason)
