# SPDX-License-Identifier: Apache-2.0
"""Two programs at a port (runtime/stage.h): the front says what becomes of a packet, the one behind it forwards.

The front is any program with a telemetry record (a metadata struct `tap`); it has ingress, egress and deparser, and no
port: the packet that its egress has left goes on to the program behind.  That one has the ports, and completes the
front's record with what it and its port did.
"""

from __future__ import annotations

from p4c_ebpf.beyond import FATE, FLIP, HOLD, PARK
from p4c_ebpf.code import Code
from p4c_ebpf.layout import Layout

ECN_OUT = "ecn_out"
INCLUDE = '#include "stage.h"\n'


def front_end(code: Code, taps: dict[str, str], group: str, port: str, drop_port: int) -> None:
    """The end of the front's main function, after its ingress."""
    code.add("u32 times = 1, then = 0;", "struct handed *h = bpf_map_lookup_elem(&handed, &zero);", "")
    code.add("if (!h)", "\treturn TC_ACT_SHOT;")
    with code.block(f"if ({group})"):
        code.add(f"u32 number = {group};", "struct group *g = bpf_map_lookup_elem(&groups, &number);", "")
        code.add("times = g ? g->copies : 0;")
    with code.block(f"else if ({port} == {drop_port})"):
        code.add("times = 0;")
    park = taps.get(PARK)
    if park:  # too long to be kept: its record does not say that it was
        unset = " = ".join(taps[name] for name in (PARK, FATE) if name in taps)
        code.add(f"if ({park} & PARK_KEEP && skb->len > STAGE_BYTES)", f"\t{unset} = 0;")
    with code.block("if (!times || !depart(skb, p, h))"):
        code.add("if (!times)", "\treport(p, 0, TELEMETRY_DROPPED, 0, 0);")
        if park:  # the packet that waits for this one goes on all the same
            code.add(f"if (needed[NEEDS_PARKS] && {park} & PARK_TAKE &&")
            code.add(f"    !stage_take(skb, {park} & (PARK_PLACES - 1), 0))", "\treturn TC_ACT_UNSPEC;")
        code.add("return TC_ACT_SHOT;")
    code.add("h->times = 1;", "h->then = 0;")
    if park:
        with code.block(f"if (needed[NEEDS_PARKS] && {park} & PARK_KEEP)"):
            code.add(f"if (!stage_keep(skb, {park} & (PARK_PLACES - 1)))", "\treturn TC_ACT_SHOT;")
        with code.block(f"else if (needed[NEEDS_PARKS] && {park} & PARK_TAKE)"):
            code.add(f"then = ({park} & (PARK_PLACES - 1)) + 1;")
    code.add("h->times = times;", "h->then = then;", "return TC_ACT_UNSPEC;")


def front_departs(code: Code, taps: dict[str, str]) -> None:
    """The end of the front's depart(), after its deparser."""
    code.add("h->times = 0;", f"h->hold_ns = {taps.get(HOLD, '0')};")
    if at := taps.get(FLIP):
        with code.block(f"if ({at} && frame_flip(skb, {at}))"):
            code.add("report(p, 0, TELEMETRY_ASTRAY, 0, 0);", "return 0;")
    code.add("fill((struct record *)h->record, p, 0, TELEMETRY_SENT, 0, 0);", "return 1;")


def report_behind(front: Layout) -> str:
    """report() of the program behind a front."""
    at = {tap.name: tap.offset for tap in front.telemetry}
    code = Code(1)
    code.add("u32 zero = 0;", "struct handed *h = bpf_map_lookup_elem(&handed, &zero);", "u8 *r;", "")
    code.add("if (!h || !telemetry_wanted())", "\treturn;")
    code.add(f"r = telemetry_reserve({front.record_bytes});", "if (!r)", "\treturn;")
    with code.block("if (p->own)"):  # nothing that the front has seen
        code.add(f"__builtin_memset(r, 0, {front.record_bytes});")
        code.add(f"*(u64 *)(r + {at['arrival_ns']}) = p->arrival_ns;")
        code.add(f"*(u16 *)(r + {at['wire_bytes']}) = p->wire_bytes;")
    with code.block("else"):
        code.add(f"__builtin_memcpy(r, h->record, {front.record_bytes});")
    code.add(f"*(u64 *)(r + {at['departure_ns']}) = departure_ns;", f"*(u32 *)(r + {at['queue_bytes']}) = queue_bytes;")
    code.add(f"r[{at['ingress_port']}] = p->ingress;", f"r[{at['egress_port']}] = port;")
    code.add(f"r[{at['verdict']}] = verdict;")
    if ECN_OUT in at:
        code.add("if (!p->own && p->ecn_out <= 3)", f"\tr[{at[ECN_OUT]}] = p->ecn_out;")
    code.add("telemetry_submit(r);")
    return (
        f'_Static_assert({front.record_bytes} <= STAGE_RECORD, "of stage.h");\n\n'
        "static __noinline void report(struct packet *p, u32 port, u32 verdict, u64 departure_ns,\n"
        f"\t\t\t      u32 queue_bytes)\n{{\n{code.text()}}}\n\n"
    )


MAIN_BEHIND = """\
SEC("tc") int switch_ingress(struct __sk_buff *skb)
{
	u32 zero = 0, times, then;
	struct handed *h = bpf_map_lookup_elem(&handed, &zero);
	struct packet *p = bpf_map_lookup_elem(&scratch, &zero);
	int done;

	if (!h || !p || !h->times)
		return TC_ACT_SHOT;
	times = h->times;
	then = h->then;
	if (times > 1 && stage_keep(skb, STAGE_COPY))
		times = 1;
	done = forwarded(skb, times > 1 || then, FRAME_MAC);
	if (times > 1 && !stage_take(skb, STAGE_COPY, p->waits))
		done = forwarded(skb, then, p->mac);
	if (then) {
		done = TC_ACT_SHOT;
		if (!stage_take(skb, then - 1, p->waits))
			done = forwarded(skb, 0, p->mac);
	}
	h->times = done == TC_ACT_UNSPEC;	/* the next filter is this program again */
	h->then = 0;
	return done;
}

"""
"""forwarded() has a packet go its way; `more`: its bytes are needed again, so it leaves as a copy."""
