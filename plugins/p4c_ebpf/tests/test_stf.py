# SPDX-License-Identifier: Apache-2.0
"""The runner of p4c's STF tests: its grammar, and tests of its kind; p4c's own where P4C and P4C_SOURCES are set."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from p4c_ebpf.translate import translate

from plugins.p4c_ebpf.tests.harness import compiled
from plugins.p4c_ebpf.tests.program_files import PROGRAMS
from plugins.p4c_ebpf.tests.stf import WRONG, results, table
from plugins.p4c_ebpf.tests.stf_grammar import Statement, StfError, parse
from plugins.p4c_ebpf.tests.stf_run import Failed, StfTest, key_name, same, short

TEXT = """
# rows
add ingress.forward hdr.ethernet.dst:0x5 send(port:0) = A
add forward hdr.ethernet.dst : 0b110  ingress.send( port : 3 )
setdefault forward discard()
packet 0 000000000005 000000000001 9999 01020304
expect 0 00000000000* 000000000001 9999 01020304 $
packet 4 000000000006 000000000001 9999 FF
expect 3
packet 4 000000000007 000000000001 9999 FF
no_packet
"""


def test_grammar() -> None:
    found = parse(TEXT)
    assert found[0] == Statement(
        3, "add", (), "ingress.forward", 0, (("hdr.ethernet.dst", "0x5"),), "send", (("port", "0"),), "A"
    )
    assert found[1].keys == (("hdr.ethernet.dst", "0b110"),)
    assert found[2] == Statement(5, "setdefault", (), "forward", 0, (), "discard", ())
    assert found[4].words == ("0", "00000000000*000000000001999901020304$")
    [one] = parse('add "t" 100 data.f1:0x****0101 h.$valid$:1 act(v:0x7f, port:2)')
    assert (one.table, one.priority, one.keys[1], one.params[1]) == ("t", 100, ("h.$valid$", "1"), ("port", "2"))
    [one] = parse("check_counter c.n(7) packets == 2")
    assert one.words == ("c.n", "7", "packets", "==", "2")
    with pytest.raises(StfError, match=r"^line 1: no command 'sing'$"):
        parse("sing")
    assert [same(b"\x12\x34", one) for one in ("1*3", "1234$", "12$", "123456")] == [True, True, False, False]
    assert [short(one) for one in (parse("packet 0 0102"), found)] == [True, False]


def test_names_of_keys() -> None:
    layout = translate(PROGRAMS / "router.json").layout
    names = ("hdrs.extra[0].h", "data.f1", "data.$valid$")
    key = layout.tables[0].keys[0]
    table = replace(layout.tables[0], keys=tuple(replace(key, name=one) for one in names))
    found = [key_name(table, one) for one in ("extra$0.h", "f1", "data.valid", "data.$valid", "valid")]
    assert found == [names[0], names[1], *[names[2]] * 3]


@pytest.mark.root
def test_a_test_of_its_kind() -> None:
    program = compiled(PROGRAMS / "l2.json", first_port=0)
    StfTest(program, parse(TEXT)).run()
    for wrong, said in (
        (TEXT.replace("expect 3", "expect 2"), "port 2: want 1 packets; got []"),
        (TEXT.replace("000000000001 9999 01020304 $", "000000000001 9999 01020305"), "port 0, packet 0: want "),
        (TEXT.replace("expect 3", ""), "port 3: want 0 packets; got "),
    ):
        with pytest.raises(Failed) as caught:
            StfTest(program, parse(wrong)).run()
        assert str(caught.value).startswith(said)


@pytest.mark.root
def test_without_expectations() -> None:
    """What leaves by a port that packets come in at is not expected; other ports are not looked at."""
    program = compiled(PROGRAMS / "l2.json", first_port=0)
    text = "add forward hdr.ethernet.dst:5 send(port:3)\npacket 0 000000000005 000000000001 9999 01"
    StfTest(program, parse(text)).run()
    with pytest.raises(Failed, match=r"^port 0: want 0 packets; got "):
        StfTest(program, parse(text.replace("port:3", "port:0"))).run()


@pytest.mark.root
def test_multicast_and_counters() -> None:
    program = compiled(PROGRAMS / "multicast.json", first_port=0)
    StfTest(program, parse("""
        mc_mgrp_create 9
        mc_node_create 400 0 2
        mc_node_associate 9 0
        packet 5 000000000000 000000000000 0009 01
        expect 0 000000000002 000000000000 5555 01 $
        expect 2 000000000002 000000000002 5555 01 $
    """)).run()  # fmt: skip


@pytest.mark.root
@pytest.mark.skipif(
    not {"P4C", "P4C_SOURCES"} <= set(os.environ), reason="want p4c-bm2-ss as P4C, its tree as P4C_SOURCES"
)
def test_p4c() -> None:
    found = list(results(Path(os.environ["P4C"]), Path(os.environ["P4C_SOURCES"]), False, []))
    assert [one for one in found if one.verdict in WRONG] == [], table(found)
    assert any(one.verdict == "pass" for one in found)
