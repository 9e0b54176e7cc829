# SPDX-License-Identifier: Apache-2.0
"""From BMv2 JSON to the C of one tc program, `switch_ingress`, and the layout of its maps.

A packet goes through parser, checksum verification, ingress, the port model of its egress port,
egress, checksum update and deparser in one run, as in simple_switch; a group's copies each have
their own egress.  What differs, because the packet's departure is known when it arrives:

- egress runs when the packet is enqueued; deq_timedelta is the wait that the port model foresees
  and deq_qdepth is enq_qdepth.  Depths are in bytes, not packets.
- the port model is charged with the packet as ingress left it.
- a field of a header that isn't valid reads as 0 and keeps no assignment, as with simple_switch's
  --ret-zero-on-invalid-hdr-read.
- registers have no lock: one flow's direction enters by one port, and the caller who attaches the program has
  a port's packets come one after the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from p4c_ebpf import document, fields, layout, stages, tables
from p4c_ebpf.actions import DROP_PORT, Statements
from p4c_ebpf.beyond import HOLD, Beyond
from p4c_ebpf.code import Code, map_of
from p4c_ebpf.copies import CLONE, MAX_COPIES, ROUNDS, Copies
from p4c_ebpf.declare import declare
from p4c_ebpf.deparser import Deparser
from p4c_ebpf.document import Node
from p4c_ebpf.expression import Scope
from p4c_ebpf.hashes import Hashes
from p4c_ebpf.layout import Layout, Tap
from p4c_ebpf.model import EGRESS_CLONE, INGRESS_CLONE, RECIRCULATE, RESUBMIT, STANDARD, Program, comment
from p4c_ebpf.parser import Parser
from p4c_ebpf.pipeline import Pipeline

_PEEK_BYTES = 32
_REPLICATION = 5
_TELEMETRY_HEAD = (
    ("arrival_ns", 8, "p->arrival_ns"),  # CLOCK_MONOTONIC
    ("departure_ns", 8, "departure_ns"),  # 0: not sent
    ("queue_bytes", 4, "queue_bytes"),  # that it found waiting at its egress port
    ("wire_bytes", 2, "p->wire_bytes"),  # with the VLAN tag, without framing
    ("ingress_port", 1, "p->ingress"),
    ("egress_port", 1, "port"),
    ("verdict", 1, "verdict"),
)
"""Of a telemetry record: name, bytes and C value."""


@dataclass(frozen=True)
class Role:
    """What a program is at its ports (stages.py): alone, in front of another one, or behind the one of this layout."""

    is_front: bool = False
    behind: Layout | None = None


ALONE = Role()


@dataclass(frozen=True)
class Translation:
    source: str
    layout: Layout


def translate(path: Path, first_port: int = 1, role: Role = ALONE) -> Translation:
    """Raises ProgramError, with the P4 file and line, for whatever can't be translated."""
    return translate_text("", path, first_port, role)


def _tap(program: Program) -> list[tuple[Tap, str]]:
    """The telemetry record, with C values: a head and the fields of the metadata struct `tap`; [] without one."""
    scalars = program.headers.get("scalars")
    if scalars is None or not scalars.metadata:
        return []
    found: list[tuple[Tap, str]] = []
    offset = 0
    for name, size, value in _TELEMETRY_HEAD:
        found.append((Tap(name, offset, size), value))
        offset += size
    seen: dict[str, int] = {}
    for field in scalars.fields.values():
        owner, dot, name = field.name.partition(".")
        if not dot:
            continue
        number = seen[owner] = seen.get(owner, -1) + 1
        # p4c writes meta.tap.x, the n-th field of the flattened struct M, as "M._tap_xn"
        match = re.fullmatch(rf"_?tap[_.](\w+?){number}", name) or re.fullmatch(r"tap\.(\w+)", name)
        if match is None:
            continue
        if field.width not in (8, 16, 32, 64):
            program.root.fail(f"tap.{match[1]} has {field.width} bits; want 8, 16, 32 or 64")
        found.append((Tap(match[1], offset, field.width // 8), f"p->m.{field.member}"))
        program.used.add((scalars.name, field.name))
        offset += field.width // 8
    return found if len(found) > len(_TELEMETRY_HEAD) else []


def _check_architecture(root: Node) -> None:
    """v1model has one parser and one deparser; PSA and PNA have others."""
    names = {part: [one["name"].text() for one in root[part]] for part in ("parsers", "pipelines", "deparsers")}
    if len(names["parsers"]) != 1 or len(names["deparsers"]) != 1 or not {"ingress", "egress"} <= {*names["pipelines"]}:
        got = "; ".join(f"{part} {', '.join(found) or 'none'}" for part, found in names.items())
        root.cannot(
            f"another architecture than v1model, which has one parser, ingress, egress, and one deparser: {got}"
        )


class _Writer:
    def __init__(self, root: Node, name: str, first_port: int, role: Role) -> None:
        _check_architecture(root)
        self.program = declare(root)
        self.first_port, self.role = first_port, role
        self.program.used |= {(owner, one) for owner in STANDARD for one in ("egress_spec", "mcast_grp")}
        self.hashes = Hashes(self.program)
        self.tap = [] if role.behind else _tap(self.program)
        named = {one["name"].text(): one for one in root["pipelines"]}
        self.deparser = Deparser(self.program, self.hashes, root)
        self.parser = Parser(self.program, self.hashes, self.deparser.order)
        self.ingress = Pipeline(self.program, named["ingress"], self.hashes)
        self.egress = Pipeline(self.program, named["egress"], self.hashes)
        middle = self.ingress.lay_out(0, 0)
        self.control_bytes = self.egress.lay_out(len(self.ingress.tables), middle)
        self.tables = [*self.ingress.tables.values(), *self.egress.tables.values()]
        self.beyond = Beyond({one.name: value for one, value in self.tap})
        self.copies = Copies(self.program, self._set, self.beyond.parks, behind=role.behind is not None)
        self.profiles = [tables.lay_out_profile(self.program, one) for one in self.program.profiles.values()]
        self.name = name

    def layout(self) -> Layout:
        size = sum(one.bytes for one, _ in self.tap)
        return Layout(
            source=self.name,
            tables=tuple(one for one in self.tables if not (one.kind == "none" and one.constant)),
            registers=tuple(
                layout.Cells(one.name, f"g{one.index}", one.size, one.width) for one in self.program.registers.values()
            ),
            counters=tuple(
                layout.Cells(one.name, f"c{one.index}", one.size, 0) for one in self.program.counters.values()
            ),
            telemetry=tuple(one for one, _ in self.tap),
            record_bytes=(size + 7) // 8 * 8,
            control_bytes=self.control_bytes,
            most_copies=MAX_COPIES,
            meters=tuple(
                layout.Meter(one.name, one.map, one.size, one.packets) for one in self.program.meters.values()
            ),
            profiles=tuple(self.profiles),
            first_port=self.first_port,
            value_sets=tuple(
                layout.ValueSet(one.name, f"v{one.index}", one.size, self.parser.value_sets[one.name])
                for one in self.program.value_sets.values()
                if one.name in self.parser.value_sets
            ),
            needed_bytes=self._needed(),
            counts_waiting=self.counts_waiting,
            rounds=ROUNDS if self.copies.follows_itself else 0,
        )

    def _needed(self) -> int:
        return layout.NEEDS_TABLE + max((one.index + 1 for one in self.tables), default=0)

    # declarations

    def _packet(self) -> str:
        members = sorted(self.program.metadata(), key=lambda one: -one.width)
        meta = [
            f"\tu64 {one.member}[2];" if one.width > 64 else f"\t{fields.member_type(one.width)} {one.member};"
            for one in members
        ]
        words = max([1, *(one.exact_words + one.masked_words + one.range_words for one in self.tables)])
        heads = "".join(
            f" *\t{one.base}: {comment(one.name)}\n" for one in self.program.headers.values() if not one.metadata
        )
        return (
            "struct meta {\n" + "\n".join(meta) + "\n};\n\n"
            f"/* Headers as on the wire; where each begins in `head`:\n{heads} */\n"
            f"struct packet {{\n\tu64 valid, dirty;\n\tu64 {', '.join(self.copies.times)};\n"
            "\tstruct meta m __attribute__((aligned(8)));\n"
            f"\tu32 {', '.join(self.copies.words)};\n"
            f"\tu8 head[{self.program.head_bytes + _PEEK_BYTES}] __attribute__((aligned(8)));\n"
            f"\tu64 key[{words}], probe[{words + 1}];\n}};\n\n"
            f"#define HEAD_BYTES {self.program.head_bytes}\n#define PACKET_BYTES "
            "(__builtin_offsetof(struct packet, head) + HEAD_BYTES)\n"
            f'_Static_assert(PACKET_BYTES == {self.copies.packet_bytes}, "as in copies.py");\n\n'
        )

    def _maps(self) -> str:
        text = (
            "struct count {\n\tu64 packets, bytes;\n};\n\nstruct bucket {\n\tu32 first, rows;\n};\n\n"
            + map_of("scratch", "PERCPU_ARRAY", 5 if self.program.clones else 2, "struct packet")
            + f"\nstruct group {{\n\tu32 copies;\n\tu16 port[{MAX_COPIES}], instance[{MAX_COPIES}];\n}};\n\n"
            + map_of("groups", "HASH", 1024, "struct group")
            + "\n"
        )
        text += (
            "/* What is needed of the program, unless a loader says less. */\n"
            "enum { NEEDS_LINKS, NEEDS_PARKS, MOST_COPIES, NEEDS_TABLE };\n"
            f'const volatile u8 needed[{self._needed()}] SEC("{layout.NEEDED}") = {{\n'
            f"\t1, 1, {MAX_COPIES}, {', '.join('1' * (self._needed() - layout.NEEDS_TABLE))}\n}};\n\n"
        )
        text += self.copies.maps()
        named: list[tuple[str, str]] = []
        for one in self.program.registers.values():
            named.append((one.name, map_of(f"g{one.index}", "ARRAY", one.size, f"u{fields.c_bits(one.width)}")))
        for one in self.program.counters.values():
            named.append((one.name, map_of(f"c{one.index}", "PERCPU_ARRAY", one.size, "struct count")))
        for meter in self.program.meters.values():
            named.append((meter.name, map_of(meter.map, "ARRAY", meter.size, "struct meter")))
        for name in self.parser.value_sets:
            one = self.program.value_sets[name]
            named.append((name, map_of(f"v{one.index}", "HASH", one.size, "u32", "__uint(key_size, 16)")))
        text += "".join(f"/* {comment(name)} */\n{made}\n" for name, made in named)
        text += "".join(tables.profile_maps(one) for one in self.profiles)
        kept = [one for one in self.tables if not (one.kind == "none" and one.constant)]
        text += "".join(tables.maps(one) for one in kept)
        if kept:
            lines = "\n".join(f"\t{line}" for one in kept for line in tables.control(one))
            text += (
                f'struct control {{\n{lines}\n}} control SEC(".data.control") = {{}};\n'
                f'_Static_assert(sizeof(struct control) == {self.control_bytes}, "as in layout.py");\n\n'
            )
        return text

    def _report(self) -> str:
        """The telemetry record, if the program has a `tap`."""
        head = (
            "static __noinline void report(struct packet *p, u32 port, u32 verdict, u64 departure_ns,\n"
            "\t\t\t      u32 queue_bytes)\n"
        )
        if self.role.behind:
            return stages.report_behind(self.role.behind)
        if not self.tap:
            return head.replace("__noinline", "__always_inline") + "{\n}\n\n"
        size = sum(one.bytes for one, _ in self.tap)
        members = "".join(f"\tu{one.bytes * 8} at{one.offset}_{one.name};\n" for one, _ in self.tap)
        spare = f"\tu8 spare[{-size % 8}];\n" if size % 8 else ""
        code, fill = Code(1), Code(1)
        code.add("struct record *r;", "", "if (!telemetry_wanted())", "\treturn;")
        code.add("r = telemetry_reserve(sizeof(*r));", "if (!r)", "\treturn;")
        into = fill if self.role.is_front else code
        into.add("__builtin_memset(r, 0, sizeof(*r));" if spare else "")
        into.add(*(f"r->at{one.offset}_{one.name} = {value};" for one, value in self.tap))
        filled = ""
        if self.role.is_front:
            code.add("fill(r, p, port, verdict, departure_ns, queue_bytes);")
            filled = (
                '_Static_assert(sizeof(struct record) <= STAGE_RECORD, "of stage.h");\n\n'
                "static __always_inline void fill(struct record *r, struct packet *p, u32 port, u32 verdict,\n"
                f"\t\t\t\t u64 departure_ns, u32 queue_bytes)\n{{\n{fill.text()}}}\n\n"
            )
        code.add("telemetry_submit(r);")
        return (
            f"/* Little-endian. */\nstruct record {{\n{members}{spare}}} __attribute__((packed));\n\n"
            f"{filled}{head}{{\n{code.text()}}}\n\n"
        )

    # functions

    def _set(self, code: Code, name: str, text: str) -> None:
        """Set a field of standard_metadata, if the program has a use for it."""
        used = self.program.standard(name)
        if used is not None:
            header = self.program.headers[used.header]
            Statements(self.program, code, self.hashes, Scope(self.program)).put(used, header, text)

    @property
    def counts_waiting(self) -> bool:
        """Whether a program of the user's reads how many packets wait, as BMv2 counts them."""
        depths = (self.program.standard("enq_qdepth"), self.program.standard("deq_qdepth"))
        return self.role.behind is not None and any(depths)

    @property
    def tells_begin(self) -> bool:
        """Whether a program reads when its packet begins to be sent."""
        return any(map(self.program.standard, ("deq_timedelta", "egress_global_timestamp")))

    def _std(self, name: str) -> str:
        return f"p->m.{self.program.needed(name).member}"

    def _control(self, code: Code, pipeline: Pipeline, lost: str) -> str:
        """Run a pipeline; returns its function, behind a front: `forwarded` is called up to three times for a packet.

        The function is not static, so that the verifier looks once at its ways, and not for each state of a caller.
        """
        if self.role.behind is None:
            pipeline.emit(code)
            return ""
        code.add(f"if ({pipeline.name}_control(0))", f"\treturn {lost};")
        body = Code(1)
        pipeline.emit(body)
        return (
            f"__noinline int {pipeline.name}_control(u32 place)\n{{\n"
            "\tstruct packet *p = bpf_map_lookup_elem(&scratch, &place);\n\n\tif (!p)\n\t\treturn -1;\n"
            f"{body.text()}\treturn 0;\n}}\n\n"
        )

    def _front_egress(self) -> str:
        code = Code(1)
        self._set(code, "egress_port", f"{self._std('egress_spec')}")
        self._set(code, "packet_length", "skb->len")
        self.egress.emit(code)
        self.deparser.checksums(code, update=True)
        with code.block("if (deparse(skb, p))"):
            code.add("report(p, 0, TELEMETRY_ASTRAY, 0, 0);", "return 0;")
        if self.program.truncates:
            with code.block("if (p->cut && skb->len >= p->cut && bpf_skb_change_tail(skb, p->cut - 1, 0))"):
                code.add("report(p, 0, TELEMETRY_ASTRAY, 0, 0);", "return 0;")
        stages.front_departs(code, self.beyond.fields)
        return (
            "/* The end of the front; 0: the packet is lost. */\n"
            "static __noinline u32 depart(struct __sk_buff *skb, struct packet *p, struct handed *h)\n"
            f"{{\n{code.text()}}}\n\n"
        )

    def _egress(self) -> str:
        code, now, behind = Code(1), self.beyond.now, self.role.behind is not None
        code.add("struct port *out = bpf_map_lookup_elem(&ports, &port);", "struct departure d;")
        code.add(f"u32 bytes = skb->len, ifindex{', packets' if self.counts_waiting else ''};", "")
        with code.block("if (!out || !out->ifindex)"):
            code.add("report(p, port, TELEMETRY_ASTRAY, 0, 0);", "return 0;")
        code.add("ifindex = out->ifindex;", "if (RELAYOUT && p->relayout)")
        code.add("\tbytes = bytes - p->headers + header_bytes(p);")
        if self.program.truncates:
            code.add("if (p->cut && bytes >= p->cut)", "\tbytes = p->cut - 1;")
        with code.block("if (needed[NEEDS_LINKS] && out->changes)"):
            code.add("d = (struct departure){};", f"link_enqueue(port, {now}, bytes, &d);")
        with code.block("else"):
            code.add(f"d = port_enqueue(out, {now}, bytes);")
        self.beyond.held(code)
        if behind:
            code.add("d.at_ns += p->hold_ns;")
        if self.counts_waiting:
            code.add("packets = waiting_packets(port, d.depth_bytes, bytes + out->framing_bytes, !d.dropped);")
        with code.block("if (d.dropped)"):
            code.add("report(p, port, d.dropped == PORT_FULL ? TELEMETRY_FULL : TELEMETRY_LINK, 0, d.depth_bytes);")
            code.add("if (d.dropped == PORT_LARGE)", "\tp->too_large = d.largest;", "return 0;")
        self._set(code, "egress_port", "port")
        self._set(code, "egress_spec", str((DROP_PORT + 1) & DROP_PORT))
        self._set(code, "packet_length", "bytes")
        depth = "packets" if self.counts_waiting else "(d.depth_bytes < 524287 ? d.depth_bytes : 524287)"
        self._set(code, "enq_qdepth", depth)
        self._set(code, "deq_qdepth", depth)
        self._set(code, "enq_timestamp", f"({now} / 1000)")
        self._set(code, "deq_timedelta", f"((d.begins_ns - {now}) / 1000)")
        self._set(code, "egress_global_timestamp", "(d.begins_ns / 1000)")
        apart = self._control(code, self.egress, "0")
        with code.block(f"if ({self._std('egress_spec')} == {DROP_PORT})"):
            code.add("report(p, port, TELEMETRY_DROPPED, 0, d.depth_bytes);", "return 0;")
        self.deparser.checksums(code, update=True)
        with code.block("if (deparse(skb, p))"):
            code.add("report(p, port, TELEMETRY_ASTRAY, 0, d.depth_bytes);", "return 0;")
        if self.program.truncates:
            with code.block("if (p->cut && skb->len >= p->cut && bpf_skb_change_tail(skb, p->cut - 1, 0))"):
                code.add("report(p, port, TELEMETRY_ASTRAY, 0, d.depth_bytes);", "return 0;")
        if RECIRCULATE in self.program.comes_again:
            with code.block("if (p->again)"):
                with code.block(f"if (!again_keep(p, {RECIRCULATE}))"):
                    code.add("p->again = 0;", "report(p, port, TELEMETRY_DROPPED, 0, d.depth_bytes);")
                code.add("return 0;")
        self.beyond.sent(code)
        if behind:
            code.add("p->ecn_out = stage_ecn(skb);")
        with code.block(f"if (d.at_ns > {now})"):
            code.add("if (!frame_is_ip(skb))", "\tframe_pose_as_ip(skb);")
            code.add("bpf_skb_set_tstamp(skb, d.at_ns, BPF_SKB_TSTAMP_DELIVERY_MONO);", "p->waits = 1;")
            # fq has a queue for each hash, and in a queue no packet before its head's time
            held = (
                " || p->hold_ns" if behind else f" || {self.beyond.fields[HOLD]}" if HOLD in self.beyond.fields else ""
            )
            code.add(f"if (out->changes == PORT_REORDERS{held})")
            code.add("\tbpf_set_hash(skb, d.at_ns * 0x9e3779b97f4a7c15ULL >> 32);")
        code.add("report(p, port, TELEMETRY_SENT, d.at_ns, d.depth_bytes);", "return ifindex;")
        return (
            apart + "/* The way out by one port; the device's ifindex, or 0: the packet is not to be sent. */\n"
            "static __noinline u32 depart(struct __sk_buff *skb, struct packet *p, u32 port)\n"
            f"{{\n{code.text()}}}\n\n"
        )

    def _clone_of_egress(self, code: Code) -> None:
        """The packet is not needed any more; clones of its clones are for the next filter, which is this program."""
        code.add(f"if (clone(skb, p, {EGRESS_CLONE}) && again_keep(p, {CLONE}))", "\treturn TC_ACT_UNSPEC;")
        code.add("return TC_ACT_SHOT;")

    def _main(self) -> str:
        code, behind = Code(1), self.role.behind is not None
        code.add("u32 zero = 0, at = 0, port;", "struct packet *p = bpf_map_lookup_elem(&scratch, &zero);")
        if behind:
            code.add("struct handed *h = bpf_map_lookup_elem(&handed, &zero);")
        code.add("u32 ifindex;", "", "if (!p || !h)" if behind else "if (!p)", "\treturn TC_ACT_SHOT;")
        for at, size in self.copies.chunks():
            # clang would make one of them, and has no call for that
            code.add(f"__builtin_memset((u8 *)p + {at}, 0, {size});", "opaque(p);")
        code.add("p->arrival_ns = bpf_ktime_get_ns();", "p->ingress = arrival_port(skb);")
        code.add("p->mac = mac;" if behind else "p->mac = FRAME_MAC;")
        if behind:
            code.add("p->hold_ns = h->hold_ns;", "p->ecn_out = ~0U;")
        no_port = "!p->ingress" if self.first_port else "p->ingress >= PORTS"
        code.add(f"if ({no_port} || (skb->vlan_present && frame_untag(skb, p)))", "\treturn TC_ACT_SHOT;")
        code.add("p->wire_bytes = skb->len;")
        if self.copies.chains:
            with code.block("if (again_restore(p))"):
                self._clone_of_egress(code)
        elif self.copies.follows_itself:
            code.add("again_restore(p);")
        if self.copies.follows_itself and behind:
            code.add("p->is_copy = more;")
        if not self.parser_regular:
            code.add("p->relayout = 1;")
        self._set(code, "ingress_port", "p->ingress")
        self._set(code, "packet_length", "skb->len")
        self._set(code, "ingress_global_timestamp", "(p->arrival_ns / 1000)")
        if self.program.standard("parser_error") is not None and self.program.errors.get("NoError", 0):
            self._set(code, "parser_error", str(self.program.errors["NoError"]))
        if self.beyond.parks:
            code.add("p->now_ns = p->arrival_ns;")
        code.add("", self.parser_text.strip("\n").lstrip("\t"))
        code.label("parsed")
        code.add("p->headers = at;")
        if self.program.sums_payload:
            code.add("p->payload = frame_sum(skb, at);")
        if INGRESS_CLONE in self.program.clones:
            code.add("keep_parsed(p);")
        if self.program.standard("checksum_error") is not None:
            self.deparser.checksums(code, update=False)
        apart = self._control(code, self.ingress, "TC_ACT_SHOT")
        if INGRESS_CLONE in self.program.clones:
            code.add("", "if (p->clone)", f"\tclone(skb, p, {INGRESS_CLONE});")
        if RESUBMIT in self.program.comes_again:
            with code.block("if (p->again)"):
                code.add(f"if (again_keep(p, {RESUBMIT}))", "\treturn TC_ACT_UNSPEC;")
                code.add("report(p, 0, TELEMETRY_DROPPED, 0, 0);", "return TC_ACT_SHOT;")
        code.add("")
        group = self._std("mcast_grp")
        if self.role.is_front:
            stages.front_end(code, self.beyond.fields, group, self._std("egress_spec"), DROP_PORT)
            return f'SEC("tc") int switch_ingress(struct __sk_buff *skb)\n{{\n{code.text()}}}\n\n'
        self.beyond.parked(code)
        with code.block(f"if ({group})"):
            self._set(code, "instance_type", str(_REPLICATION))
            code.add(f"return flood(skb, p, {group});")
        code.add(f"port = {self._std('egress_spec')};")
        with code.block(f"if (port == {DROP_PORT})"):
            code.add("report(p, 0, TELEMETRY_DROPPED, 0, 0);", "return TC_ACT_SHOT;")
        if self.program.comes_again:
            self._set(code, "instance_type", "0")
        code.add("ifindex = depart(skb, p, port);")
        if RECIRCULATE in self.program.comes_again:
            code.add("if (p->again)", "\treturn TC_ACT_UNSPEC;")
        if EGRESS_CLONE in self.program.clones:
            with code.block("if (p->clone)"):
                code.add("if (ifindex)", "\tsend_copy(skb, port, ifindex);")
                self._clone_of_egress(code)
        code.add("if (!ifindex)", "\treturn needed[NEEDS_LINKS] && p->too_large ? answer(skb, p) : TC_ACT_SHOT;")
        if behind:
            with code.block("if (more)"):
                code.add("send_copy(skb, port, ifindex);", "return TC_ACT_SHOT;")
        code.add("return send_away(skb, port, ifindex, p->waits);")
        if behind:
            return (
                apart
                + f"static __noinline int forwarded(struct __sk_buff *skb, u32 more, u32 mac)\n{{\n{code.text()}}}\n\n"
                + stages.MAIN_BEHIND
            )
        return f'SEC("tc") int switch_ingress(struct __sk_buff *skb)\n{{\n{code.text()}}}\n\n'

    def source(self) -> str:
        parser = Code(1)
        self.parser.emit(parser)
        self.parser_regular, self.parser_text = self.parser.regular, parser.text()
        self.program.resizes |= not self.parser.regular
        report = self._report()
        egress = self._front_egress() if self.role.is_front else self._egress()
        main = self._main()
        relayout = f"#define RELAYOUT {int(self.program.resizes)}\n\n"
        route = self.beyond.route(self._std("mcast_grp"), self._std("egress_spec"), DROP_PORT)
        copies = (
            self.copies.again()
            + self.copies.clone()
            + self.beyond.answer(self.role.behind is not None)
            + self.copies.flood()
            + route
        )
        if self.role.is_front:
            if self.program.clones or self.program.comes_again:
                self.program.root.cannot("clones, resubmit() or recirculate() in front of another program")
            copies = ""
        bodies = relayout + self.copies.come_again() + self.deparser.functions() + egress + copies + main
        shown = comment(Path(str(self.program.root.value.get("program", self.name))).name)
        return (
            "/* SPDX-License-Identifier: GPL-2.0 */\n"
            f"/* Translated from {shown}: do not edit. */\n\n"
            + ("#define PORT_BEGINS\n" if self.tells_begin else "")
            + '#include "helpers.h"\n#include "port_model.h"\n#include "link_model.h"\n#include "telemetry.h"\n'
            + ('#include "meter.h"\n' if self.program.meters or self.program.direct_meters else "")
            + "\n"
            + self._packet()
            + self._maps()
            + (stages.INCLUDE if self.role != ALONE else "")
            + ('#include "waiting.h"\n' if self.counts_waiting else "")
            + '#include "frame.h"\n#include "transmit.h"\n'
            + ('#include "random.h"\n' if self.program.draws else "")
            + ('#include "payload.h"\n' if self.program.sums_payload else "")
            + self.beyond.includes()
            + "\n"
            + self.hashes.definitions()
            + "\n"
            + report
            + bodies
            + 'char _license[] SEC("license") = "GPL";\n'
        )


def translate_text(text: str, path: Path, first_port: int = 1, role: Role = ALONE) -> Translation:
    """Like translate(), of a document that has been read; `path` is for errors.

    first_port  0: port 0 is a port, as in BMv2; where packets come from devices it is the device that is no port
    """
    root = document.parse(text, str(path)) if text else document.load(path)
    writer = _Writer(root, path.name, first_port, role)
    source = writer.source()
    return Translation(source, writer.layout())
