# SPDX-License-Identifier: Apache-2.0
"""Which of all sites become mutants, and the text of a file with them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testctl.mutate.operators import NUMBER, Site

MOST = 8000
"""Mutants of a kernel: it lists what was reached in a page, 2 bits each."""
HEADER = "net/ipv4/testctl/mutants_switch.h"


@dataclass(frozen=True)
class Mutant:
    """A site with its number, from 1, in the order of drawing."""

    number: int
    site: Site


def draw(sites: Sequence[Site], count: int, seed: int) -> list[Mutant]:
    """`count` of the sites, or as many as there are that can be in a kernel together."""
    order = _in_turns(sites, random.Random(seed))
    chosen: dict[tuple[str, str], list[Site]] = {}
    drawn: list[Mutant] = []
    for site in order:
        if len(drawn) == min(count, MOST):
            break
        others = chosen.setdefault((site.file, site.function), [])
        if all(fit(site, other) for other in others):
            others.append(site)
            drawn.append(Mutant(len(drawn) + 1, site))
    return drawn


def _in_turns(sites: Sequence[Site], chance: random.Random) -> list[Site]:
    """The sites in a random order with every operator as often as another: some have hundreds of times more sites."""
    by: dict[str, list[Site]] = {}
    for site in sites:
        by.setdefault(site.operator, []).append(site)
    for among in by.values():
        chance.shuffle(among)
    return [among[turn] for turn in range(len(sites)) for among in by.values() if turn < len(among)]


def fit(one: Site, other: Site) -> bool:
    """Whether two sites of a file can be changed at once: apart, or within one that wraps."""
    if one.end <= other.start or other.end <= one.start:
        return True
    inner, outer = sorted((one, other), key=lambda site: (site.end - site.start, not site.instead))
    return not outer.instead and outer.start <= inner.start and inner.end <= outer.end


def rewritten(name: str, text: bytes, mutants: Iterable[Mutant]) -> bytes:
    """A file with its mutants; its lines keep their numbers."""
    header = os.path.relpath(HEADER, os.path.dirname(name))
    own = [mutant for mutant in mutants if mutant.site.file == name]
    own.sort(key=lambda m: (m.site.start, -m.site.end, bool(m.site.instead), m.number))
    return f'#include "{header}"\n#line 1\n'.encode() + _between(text, 0, len(text), own)


def _between(text: bytes, start: int, end: int, mutants: Sequence[Mutant]) -> bytes:
    parts, at, index = [], start, 0
    while index < len(mutants):
        mutant = mutants[index]
        site, inner = mutant.site, index + 1
        while inner < len(mutants) and mutants[inner].site.start < site.end:
            inner += 1
        before, after, instead = (
            part.replace(NUMBER, str(mutant.number)).encode() for part in (site.before, site.after, site.instead)
        )
        code = instead or before + _between(text, site.start, site.end, mutants[index + 1 : inner]) + after
        parts += [text[at : site.start], code]
        at, index = site.end, inner
    return b"".join([*parts, text[at:end]])
