# SPDX-License-Identifier: Apache-2.0
"""Entries as words: widths, prefixes, names and defaults, without a kernel."""

from __future__ import annotations

import itertools

import pytest
from p4c_ebpf.layout import Layout, Table, from_json
from p4c_ebpf.translate import translate
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Entry, Exact, Lpm, Range, Ternary, find
from testctl_agent.switch.drivers.rows import packed, row_of

from plugins.p4c_ebpf.tests.program_files import NAMES, PROGRAMS


def layout(name: str) -> Layout:
    return translate(PROGRAMS / f"{name}.json").layout


def table(name: str, which: str) -> Table:
    return find({one.name: one for one in layout(name).tables}, which, "table")


@pytest.mark.parametrize("name", NAMES)
def test_layouts_are_kept_whole(name: str) -> None:
    one = layout(name)
    assert from_json(one.to_json()) == one
    starts = [(each.control, each.control_bytes) for each in one.tables]
    assert all(at + size == following for (at, size), (following, _) in itertools.pairwise(starts))
    assert one.control_bytes == sum(size for _, size in starts)


def test_wide_keys_are_two_words() -> None:
    one = table("ipv6", "hosts")
    keys = {"src": Exact(1 << 127 | 5), "next": Exact(59)}
    row = row_of(one, Entry("hosts", keys, "rewrite", {"address": 3 << 64 | 9}))
    assert row.exact == (1 << 63, 5, 59)
    assert row.data == (3, 9)
    assert len(packed(one, row)) == one.row_bytes == 32


def test_prefixes() -> None:
    one = table("router", "routes")
    row = row_of(one, Entry("routes", {"dst": Lpm(0x0A0B0C0D, 12)}, "discard"))
    assert (row.value, row.mask, row.priority) == ((0x0A000000,), (0xFFF00000,), 12)
    assert row_of(one, Entry("routes", {"dst": Ternary(0x0A0B0C0D, 0xFFF00000)}, "discard")).identity == row.identity
    assert row_of(one, Entry("routes", {}, "discard")).mask == (0,)


@pytest.mark.parametrize(
    ("program", "entry", "said"),
    [
        ("l2", Entry("forward", {"dst": Exact(1 << 48)}, "send", {"port": 1}),
         "table ingress.forward: hdr.ethernet.dst: want a number of 48 bits; got 0x1000000000000"),
        ("l2", Entry("forward", {"dst": Exact(-1)}, "send", {"port": 1}),
         "table ingress.forward: hdr.ethernet.dst: want a number of 48 bits; got -0x1"),
        ("l2", Entry("forward", {"dst": Exact(1)}, "send", {"port": 512}),
         "table ingress.forward: ingress.send.port: want a number of 9 bits; got 0x200"),
        ("l2", Entry("forward", {}, "send", {"port": 1}),
         "table ingress.forward: hdr.ethernet.dst: want an exact value"),
        ("l2", Entry("forward", {"dst": Exact(1)}, "send"),
         "table ingress.forward: action ingress.send: want parameters ['port']; got []"),
        ("l2", Entry("forward", {"dst": Exact(1)}, "sent", {}),
         "table ingress.forward: action 'sent': want one of ingress.discard, ingress.send"),
        ("l2", Entry("forward", {"src": Exact(1)}, "discard"),
         "table ingress.forward: field 'src': want one of hdr.ethernet.dst"),
        ("router", Entry("routes", {"dst": Lpm(1, 33)}, "discard"),
         "table ingress.routes: hdr.ipv4.dst: want a prefix length from 0 to 32; got 33"),
        ("router", Entry("routes", {"dst": Ternary(1, 1)}, "discard"),
         "table ingress.routes: hdr.ipv4.dst: want a prefix; got mask 0x1"),
        ("ranges", Entry("by_length", {"length": Range(5, 4)}, "NoAction"),
         "table ingress.by_length: hdr.ipv4.length: the range 5-4 is empty"),
        ("ranges", Entry("by_length", {"length": Ternary(5, 4)}, "NoAction"),
         "table ingress.by_length: hdr.ipv4.length: want range; got ternary"),
        ("ranges", Entry("by_length", {}, "NoAction", priority=-1),
         "table ingress.by_length: want a priority from 0 to 2147483647; got -1"),
    ],
)  # fmt: skip
def test_refusals(program: str, entry: Entry, said: str) -> None:
    with pytest.raises(DriverError) as caught:
        row_of(table(program, entry.table), entry)
    assert str(caught.value) == said


def test_names() -> None:
    things = {"ingress.a.rules": 1, "ingress.b.rules": 2, "egress.last": 3}
    assert find(things, "last", "table") == find(things, "egress.last", "table") == 3
    assert find(things, "b.rules", "table") == 2
    with pytest.raises(
        DriverError, match=r"^table 'rules': want a name that only one has; ingress.a.rules, ingress.b.rules have it$"
    ):
        find(things, "rules", "table")
    with pytest.raises(DriverError, match=r"^table 'ast': want one of egress.last, "):
        find(things, "ast", "table")
