# SPDX-License-Identifier: Apache-2.0
"""Packets that leave more than once: the copies of a multicast group, and clones.

A copy has the headers and metadata of the end of ingress.  A clone has the headers as they were parsed
(I2E) or as egress left them (E2E), and no metadata but the fields of its list.  Each has an egress of its
own.  A packet's bytes are those of the copy before, so all headers of the next one are written again.
Source: behavioral-model, targets/simple_switch/simple_switch.cpp; what differs: a clone is not cloned again.
"""

from __future__ import annotations

from collections.abc import Callable

from p4c_ebpf import fields
from p4c_ebpf.code import Code, map_of
from p4c_ebpf.model import EGRESS_CLONE, INGRESS_CLONE, Field, Program

MAX_COPIES = 16
"""Ports of one multicast group or clone session."""
CHUNK = 512
_PARSED, _KEPT, _LAST = 2, 3, 4
"""Places in the map `scratch`: the packet as it was parsed, as it was before it was cloned, and its last clone."""
CLONE = 256
"""Of a packet that comes again: the last clone, of which its egress wanted one."""

_AGAIN = """\
/* Let the packet be what scratch[number] is; its bytes are still those of the copy before. */
__noinline int again(struct packet *p, u32 number)
{{
	struct packet *from = bpf_map_lookup_elem(&scratch, &number);
	u32 headers, mac;

	if (!p || !from)
		return -1;
	headers = p->headers;
	mac = p->mac;
	{copy}
	p->headers = headers;
	p->mac = mac;
	p->relayout = RELAYOUT;
	p->dirty = ~0ULL;
	return 0;
}}

"""

ROUNDS = 8
"""How often a packet may come again: so many times more the program is among a port's filters."""
_ROUND = """\
struct round {{
	u32 type;	/* instance_type of the packet when it comes again; 0: it does not */
	u32 list, count, mac;
	struct meta m;
}};

struct {{
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct round);
}} rounds SEC(".maps");

/* Let the next filter, which is this program again, take the packet; 0: it has come too often, or is a copy. */
static __noinline int again_keep(struct packet *p, u32 type)
{{
	u32 zero = 0;
	struct round *r = bpf_map_lookup_elem(&rounds, &zero);

	if (!r || p->is_copy || r->count >= {rounds})
		return 0;
	r->type = type;
	r->list = p->again ? p->again - 1 : 0;
	r->count += 1;
	r->mac = p->mac;
	r->m = p->m;
	return 1;
}}

"""


class Copies:
    """Writes flood() and clone(); `setter` writes a field of standard_metadata if the program has a use for it."""

    def __init__(
        self, program: Program, setter: Callable[[Code, str, str], None], parks: bool = False, behind: bool = False
    ) -> None:
        self.program, self._set, self._parks, self._behind = program, setter, parks, behind

    @property
    def chains(self) -> bool:
        """Whether the egress of a clone may want a clone of it."""
        return EGRESS_CLONE in self.program.clones

    @property
    def follows_itself(self) -> bool:
        """Whether the program stands more than once among a port's filters."""
        return bool(self.program.comes_again) or self.chains

    def maps(self) -> str:
        if not self.program.clones:
            return ""
        return f"/* Clone sessions. */\n{map_of('mirrors', 'HASH', 1024, 'struct group')}\n"

    @property
    def words(self) -> list[str]:
        """The u32 of struct packet behind its metadata."""
        cloned = ["clone", "clone_list"] if self.program.clones else []
        cut = ["cut"] if self.program.truncates else []
        again = ["again", "is_copy"] if self.follows_itself else []
        payload = ["payload"] if self.program.sums_payload else []
        lengths = [f"extra{one.bit}" for one in self.program.headers.values() if one.extra]
        always = ["headers", "relayout", "wire_bytes", "ingress", "mac", "hit", "waits", "too_large"]
        return [*always, *cut, *payload, *again, *cloned, *lengths, *(["own", "ecn_out"] if self._behind else [])]

    @property
    def times(self) -> list[str]:
        """The u64 before its metadata: when it arrived, and when it came to its port."""
        return ["arrival_ns", *(["now_ns"] if self._parks else []), *(["hold_ns"] if self._behind else [])]

    @property
    def packet_bytes(self) -> int:
        """Of struct packet up to the end of `head`."""
        sizes = [fields.c_bits(min(one.width, 64)) // 8 for one in self.program.metadata()]
        meta = sum(sizes) + sum(8 for one in self.program.metadata() if one.width > 64)
        meta = -(-meta // max(sizes)) * max(sizes)
        return -(-(16 + 8 * len(self.times) + meta + 4 * len(self.words)) // 8) * 8 + self.program.head_bytes

    def chunks(self) -> list[tuple[int, int]]:
        """Pieces of struct packet that clang copies inline: where each begins, and its size."""
        return [(at, min(CHUNK, self.packet_bytes - at)) for at in range(0, self.packet_bytes, CHUNK)]

    def _copy(self, to: str, source: str) -> list[str]:
        return [f"__builtin_memcpy((u8 *){to} + {at}, (u8 *){source} + {at}, {size});" for at, size in self.chunks()]

    def again(self) -> str:
        """again(), not static, so that the verifier checks it once and not for each copy."""
        return _AGAIN.format(copy="\n\t".join(self._copy("p", "from")))

    def flood(self) -> str:
        code = Code(1)
        code.add("struct group *g = bpf_map_lookup_elem(&groups, &number);", "u32 one = 1, ifindex;")
        code.add("struct packet *saved = bpf_map_lookup_elem(&scratch, &one);", "")
        with code.block("if (!g || !saved || !g->copies)"):
            code.add("report(p, 0, TELEMETRY_ASTRAY, 0, 0);", "return TC_ACT_SHOT;")
        code.add(*(["p->is_copy = 1;"] if self.follows_itself else []), *self._copy("saved", "p"))
        with code.block(f"for (u32 i = 0; i < {MAX_COPIES}; i++)"):
            code.add("u32 port;", "", "if (i >= needed[MOST_COPIES] || i >= g->copies)", "\tbreak;")
            code.add("port = g->port[i];", "if (i > 0)", "\tagain(p, one);")
            self._set(code, "egress_rid", "g->instance[i]")
            code.add("ifindex = depart(skb, p, port);", "if (ifindex)", "\tsend_copy(skb, port, ifindex);")
            if EGRESS_CLONE in self.program.clones:
                code.add("if (p->clone)", f"\tclone(skb, p, {EGRESS_CLONE});")
        code.add("return needed[NEEDS_LINKS] && p->too_large ? answer(skb, p) : TC_ACT_SHOT;")
        return (
            "/* A copy for each port of the group; each has its own egress. */\n"
            f"static {'__noinline' if self._parks else '__always_inline'} int flood(struct __sk_buff *skb, "
            "struct packet *p, u32 number)\n"
            f"{{\n{code.text()}}}\n\n"
        )

    def clone(self) -> str:
        """keep_parsed() and clone(), if the program clones."""
        if not self.program.clones:
            return ""
        code = Code(1)
        code.add(f"u32 kept = {_KEPT}, origin = type == {INGRESS_CLONE} ? {_PARSED} : kept;")
        code.add(f"u32 number = p->clone & 0x7fff, ifindex{', chained = 0' if self.chains else ''};")
        code.add("struct group *g = bpf_map_lookup_elem(&mirrors, &number);")
        code.add("struct packet *now = bpf_map_lookup_elem(&scratch, &kept);", "", "p->clone = 0;")
        code.add("if (!g || !now)", "\treturn 0;")
        code.add(*self._copy("now", "p"))
        with code.block(f"for (u32 i = 0; i < {MAX_COPIES}; i++)"):
            code.add("u32 port;", "", "if (i >= g->copies)", "\tbreak;", "port = g->port[i];")
            self._untimed(code)
            code.add("again(p, origin);")
            code.add("__builtin_memset(&p->m, 0, sizeof(p->m));", "p->clone = 0;")
            code.add(*(["p->is_copy = 1;"] if self.follows_itself else []))
            self._preserve(code, "now->clone_list")
            self._set(code, "instance_type", "type")
            self._set(code, "egress_rid", "g->instance[i]")
            code.add("ifindex = depart(skb, p, port);", "if (ifindex)", "\tsend_copy(skb, port, ifindex);")
        self._untimed(code)
        if self.chains:
            with code.block("if (p->clone)"):
                code.add(f"u32 place = {_LAST};", "struct packet *last = bpf_map_lookup_elem(&scratch, &place);", "")
                with code.block("if (last)"):
                    code.add(*self._copy("last", "p"), "chained = 1;")
        code.add("again(p, kept);", "p->clone = 0;", f"return {'chained' if self.chains else '0'};")
        keep = Code(1)
        keep.add(f"u32 parsed = {_PARSED};", "struct packet *to = bpf_map_lookup_elem(&scratch, &parsed);", "")
        with keep.block("if (to)"):
            keep.add(*self._copy("to", "p"))
        text = "/* Send clones of the packet by the ports of a session; the packet itself is kept. */\n"
        if INGRESS_CLONE in self.program.clones:
            text = f"static __always_inline void keep_parsed(struct packet *p)\n{{\n{keep.text()}}}\n\n{text}"
        head = "static __noinline int clone(struct __sk_buff *skb, struct packet *p, u32 type)"
        return f"{text}{head}\n{{\n{code.text()}}}\n\n"

    def _untimed(self, code: Code) -> None:
        """The copy before may have a departure time."""
        code.add("if (p->waits)", "\tbpf_skb_set_tstamp(skb, 0, BPF_SKB_TSTAMP_UNSPEC);")

    def come_again(self) -> str:
        """again_keep() and again_restore(), if packets come again."""
        if not self.follows_itself:
            return ""
        code = Code(1)
        code.add("u32 zero = 0;", "struct round *now = bpf_map_lookup_elem(&rounds, &zero);", "")
        code.add("if (!now)", "\treturn 0;")
        with code.block("if (!now->type)"):
            code.add("now->count = 0;", "return 0;")
        if self.chains:
            with code.block(f"if (now->type == {CLONE})"):
                code.add(f"u32 place = {_LAST};", "struct packet *last = bpf_map_lookup_elem(&scratch, &place);", "")
                code.add("now->type = 0;", "if (!last)", "\treturn 0;", *self._copy("p", "last"))
                code.add("p->is_copy = 0;", "p->relayout = RELAYOUT;", "p->dirty = ~0ULL;", "return 1;")
        self._preserve(code, "now->list")
        self._set(code, "instance_type", "now->type")
        code.add("p->mac = now->mac;", "now->type = 0;", "return 0;")
        return (
            _ROUND.format(rounds=ROUNDS)
            + "/* What a packet that comes again has of its last round; 1: it is a clone, that is to be cloned. */\n"
            + f"static __noinline int again_restore(struct packet *p)\n{{\n{code.text()}}}\n\n"
        )

    def _preserve(self, code: Code, asked: str) -> None:
        """Copy the fields of the list that the packet asked for."""
        with code.block(f"switch ({asked})"):
            for number, found in self.program.field_lists.items():
                code.add(f"case {number}:")
                code.add(*(line for one in found for line in self._member(one)), "\tbreak;")

    def _member(self, one: Field) -> list[str]:
        if one.width > 64:
            return [f"\tp->m.{one.member}[{at}] = now->m.{one.member}[{at}];" for at in (0, 1)]
        return [f"\tp->m.{one.member} = now->m.{one.member};"]
